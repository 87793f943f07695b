import { parentPort, Worker } from "node:worker_threads";

/** A worker thread that serves requests one after the other. */
export interface WorkerThread<Input, Output> {
  /** Sends a request. Rejects if the thread ends before its response; the next request starts a new thread. */
  request(input: Input, transfer?: readonly ArrayBuffer[]): Promise<Output>;
}

/** A message to the thread; the response has the same id. `error` is the message of a thrown error. */
interface ThreadRequest<Input> {
  readonly id: number;
  readonly input: Input;
}
type ThreadResponse<Output> =
  | { readonly id: number; readonly response: Output }
  | { readonly id: number; readonly error: string };

const idleMs = 10_000;

/**
 * Starts the module at `url` as a thread on the first request, and terminates it after ten idle seconds to free its
 * memory. The module serves requests with `serveThread`.
 */
export function createWorkerThread<Input, Output>(
  url: URL,
  { memoryMb }: { readonly memoryMb: number },
): WorkerThread<Input, Output> {
  let worker: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  let lastId = 0;
  const open = new Map<number, PromiseWithResolvers<Output>>();

  function start(): Worker {
    const started = new Worker(url, { resourceLimits: { maxOldGenerationSizeMb: memoryMb } });
    started.unref();
    started.on("message", (message: ThreadResponse<Output>) => {
      const waiting = removeWaiting(message.id);
      if ("error" in message) waiting?.reject(new Error(message.error));
      else waiting?.resolve(message.response);
    });
    const ended = (error: unknown) => {
      if (worker !== started) return;
      worker = undefined;
      for (const id of open.keys()) removeWaiting(id)?.reject(new Error("the thread has ended", { cause: error }));
    };
    started.on("error", ended).on("exit", ended);
    return started;
  }

  function removeWaiting(id: number): PromiseWithResolvers<Output> | undefined {
    const found = open.get(id);
    open.delete(id);
    if (open.size === 0) idle = setTimeout(stop, idleMs).unref();
    return found;
  }

  function stop(): void {
    const old = worker;
    worker = undefined;
    old?.terminate().catch(() => undefined);
  }

  return {
    request(input, transfer = []) {
      clearTimeout(idle);
      lastId += 1;
      const request: ThreadRequest<Input> = { id: lastId, input };
      const waiting = Promise.withResolvers<Output>();
      worker ??= start();
      open.set(request.id, waiting);
      worker.postMessage(request, transfer);
      return waiting.promise;
    },
  };
}

/** Serves a worker thread: responds to each request and transfers the memory of the buffers in `transfer`. */
export function serveThread<Input, Output>(
  handle: (input: Input) => { readonly response: Output; readonly transfer?: readonly ArrayBuffer[] },
): void {
  parentPort?.on("message", ({ id, input }: ThreadRequest<Input>) => {
    let message: ThreadResponse<Output>;
    let transfer: readonly ArrayBuffer[] = [];
    try {
      const handled = handle(input);
      message = { id, response: handled.response };
      transfer = handled.transfer ?? [];
    } catch (error) {
      message = { id, error: error instanceof Error ? error.message : String(error) };
    }
    parentPort?.postMessage(message, transfer);
  });
}

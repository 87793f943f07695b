import { Worker } from "node:worker_threads";

/** A thread that answers requests, one after the other. */
export interface WorkerThread<Question, Answer> {
  /** Rejects when the thread ends meanwhile; the next request starts another one. */
  ask(question: Question, transfer?: readonly ArrayBuffer[]): Promise<Answer>;
}

/** What goes to the thread, and what it answers: `error` is the message of what it threw. */
export interface ThreadRequest<Question> {
  readonly id: number;
  readonly question: Question;
}
export type ThreadAnswer<Answer> =
  | { readonly id: number; readonly answer: Answer }
  | { readonly id: number; readonly error: string };

const idleMs = 10_000;

/**
 * Starts the module at `url` as a thread when it is first asked, and lets it go with its memory once it had nothing to do for ten
 * seconds. The module answers with `answerAll`.
 */
export function createWorkerThread<Question, Answer>(
  url: URL,
  { memoryMb }: { readonly memoryMb: number },
): WorkerThread<Question, Answer> {
  let worker: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  let asked = 0;
  const open = new Map<number, PromiseWithResolvers<Answer>>();

  function start(): Worker {
    const started = new Worker(url, { resourceLimits: { maxOldGenerationSizeMb: memoryMb } });
    started.unref();
    started.on("message", (message: ThreadAnswer<Answer>) => {
      const waiting = take(message.id);
      if ("error" in message) waiting?.reject(new Error(message.error));
      else waiting?.resolve(message.answer);
    });
    const ended = (error: unknown) => {
      if (worker !== started) return;
      worker = undefined;
      for (const id of open.keys()) take(id)?.reject(new Error("the thread has ended", { cause: error }));
    };
    started.on("error", ended).on("exit", ended);
    return started;
  }

  function take(id: number): PromiseWithResolvers<Answer> | undefined {
    const found = open.get(id);
    open.delete(id);
    if (open.size === 0) idle = setTimeout(letGo, idleMs).unref();
    return found;
  }

  function letGo(): void {
    const old = worker;
    worker = undefined;
    old?.terminate().catch(() => undefined);
  }

  return {
    ask(question, transfer = []) {
      clearTimeout(idle);
      asked += 1;
      const request: ThreadRequest<Question> = { id: asked, question };
      const waiting = Promise.withResolvers<Answer>();
      worker ??= start();
      open.set(request.id, waiting);
      worker.postMessage(request, transfer);
      return waiting.promise;
    },
  };
}

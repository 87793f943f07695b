import { parentPort } from "node:worker_threads";
import type { ThreadResponse, ThreadRequest } from "./worker-thread.ts";

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

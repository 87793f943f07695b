import { parentPort } from "node:worker_threads";
import type { ThreadAnswer, ThreadRequest } from "./worker-thread.ts";

/** Serves a worker thread: responds to each request and transfers the memory of the buffers in `transfer`. */
export function answerAll<Question, Answer>(
  handle: (question: Question) => { readonly answer: Answer; readonly transfer?: readonly ArrayBuffer[] },
): void {
  parentPort?.on("message", ({ id, question }: ThreadRequest<Question>) => {
    let message: ThreadAnswer<Answer>;
    let transfer: readonly ArrayBuffer[] = [];
    try {
      const handled = handle(question);
      message = { id, answer: handled.answer };
      transfer = handled.transfer ?? [];
    } catch (error) {
      message = { id, error: error instanceof Error ? error.message : String(error) };
    }
    parentPort?.postMessage(message, transfer);
  });
}

import { parentPort } from "node:worker_threads";
import type { ThreadAnswer, ThreadRequest } from "./worker-thread.ts";

/** Inside of a thread: answers each request, and gives away the memory of what is in `transfer`. */
export function answerAll<Question, Answer>(
  answer: (question: Question) => { readonly answer: Answer; readonly transfer?: readonly ArrayBuffer[] },
): void {
  parentPort?.on("message", ({ id, question }: ThreadRequest<Question>) => {
    let message: ThreadAnswer<Answer>;
    let transfer: readonly ArrayBuffer[] = [];
    try {
      const done = answer(question);
      message = { id, answer: done.answer };
      transfer = done.transfer ?? [];
    } catch (error) {
      message = { id, error: error instanceof Error ? error.message : String(error) };
    }
    parentPort?.postMessage(message, transfer);
  });
}

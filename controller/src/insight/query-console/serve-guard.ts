import { parentPort } from "node:worker_threads";
import type { StatementVerdict } from "./statement-verdict.ts";

/**
 * Checks statements in a thread of its own: a statement that blocks or crashes the parser affects no other call.
 * `first`: a statement that is checked before those of users, because code is compiled lazily.
 */
export function serveGuard(check: (sql: string) => StatementVerdict, first: string): void {
  check(first);
  parentPort?.on("message", (sql: string) => parentPort?.postMessage(check(sql)));
  parentPort?.postMessage("ready");
}

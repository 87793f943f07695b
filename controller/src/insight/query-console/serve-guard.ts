import { parentPort } from "node:worker_threads";
import type { StatementVerdict } from "./statement-verdict.ts";

/**
 * Checks statements in this worker thread, so that a statement that blocks or crashes the parser affects no other call.
 * `warmUpStatement`: a statement that is checked at the start, because Node compiles code at its first use.
 */
export function serveGuard(check: (sql: string) => StatementVerdict, warmUpStatement: string): void {
  check(warmUpStatement);
  parentPort?.on("message", (sql: string) => parentPort?.postMessage(check(sql)));
  parentPort?.postMessage("ready");
}

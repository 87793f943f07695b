import { parentPort } from "node:worker_threads";
import { checkStatement, loadParser } from "./console-guard.ts";

/** The guard runs in a thread of its own: a statement that blocks or crashes the parser affects no other call. */
await loadParser();
// The first statement is slow because code is compiled lazily, so this one comes before those of users.
checkStatement("SELECT a, count(*) FROM b WHERE c IN (1, 'x') GROUP BY 1 ORDER BY 2 LIMIT 5");
parentPort?.on("message", (sql: string) => parentPort?.postMessage(checkStatement(sql)));
parentPort?.postMessage("ready");

import { parentPort } from "node:worker_threads";
import { judge, loadParser } from "./console-guard.ts";

/** In a thread of its own: a statement that keeps the parser busy, or ends it, harms nobody else. */
await loadParser();
// The first statement pays for what is compiled when it is needed; it is not to be a user's.
judge("SELECT a, count(*) FROM b WHERE c IN (1, 'x') GROUP BY 1 ORDER BY 2 LIMIT 5");
parentPort?.on("message", (sql: string) => parentPort?.postMessage(judge(sql)));
parentPort?.postMessage("ready");

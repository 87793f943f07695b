import type { EngineConsole } from "../engine-console.ts";
import { schemaSql, tablesOf } from "./schema.ts";

export const postgresql: EngineConsole = {
  guardWorker: new URL("./guard-worker.ts", import.meta.url),
  schemaSql,
  tablesOf,
  // EXPLAIN does not accept SHOW or another EXPLAIN.
  explain: (sql) => (/^(SELECT|WITH|VALUES)\b/i.test(sql) ? `EXPLAIN ${sql}` : undefined),
};

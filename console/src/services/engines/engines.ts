import type { ConsoleEngine } from "./console-engine.ts";
import { kafka } from "./kafka.ts";
import { mongodb } from "./mongodb.ts";
import { mysql } from "./mysql.ts";
import { opensearch } from "./opensearch.ts";
import { postgresql } from "./postgresql.ts";
import { tsql } from "./tsql.ts";
import { valkey } from "./valkey.ts";

/** Engines with snippets or a query console, by the value of `database_type`. */
const engines: ReadonlyMap<string, ConsoleEngine> = new Map(
  Object.entries({ postgresql, mysql, valkey, tsql, kafka, mongodb, opensearch }),
);

/** The engine; for an unknown one, a snippet with the URI. */
export function consoleEngineOf(databaseType: string): ConsoleEngine {
  return engines.get(databaseType) ?? { snippets: ({ uri }) => [{ title: "URI", text: uri }] };
}

import type { ConsoleEngine } from "./console-engine.ts";
import { postgresql } from "./postgresql.ts";
import { valkey } from "./valkey.ts";

/** Engines that the console knows more of than their URI, by the value of `database_type`. */
const engines: ReadonlyMap<string, ConsoleEngine> = new Map(Object.entries({ postgresql, valkey }));

/** The engine, or one with its URI alone. */
export function consoleEngineOf(databaseType: string): ConsoleEngine {
  return engines.get(databaseType) ?? { snippets: ({ uri }) => [{ title: "URI", text: uri }] };
}

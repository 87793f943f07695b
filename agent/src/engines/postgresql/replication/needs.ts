import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { dataDirectory, program } from "../layout.ts";

const environment = { LC_ALL: "C", TZ: "UTC" };

/** What the primary of the log that was replayed last had of each, as the data themselves keep it. */
export async function needs(
  { run }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<Readonly<Record<string, number>>> {
  const told = await run([program(instance, "pg_controldata"), dataDirectory(instance)], { env: environment, signal });
  return settingsIn(told);
}

/** Pure: the whole numbers among the settings that pg_controldata prints. */
export function settingsIn(told: string): Record<string, number> {
  const found = told.matchAll(
    /^(max_(?:connections|worker_processes|prepared_xacts|locks_per_xact)) setting:\s+(\d+)$/gm,
  );
  return Object.fromEntries(
    [...found].map(([, name = "", value]) => [parameterNames.get(name) ?? name, Number(value)]),
  );
}

/** Where pg_controldata has a name of its own. */
const parameterNames: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({
    max_prepared_xacts: "max_prepared_transactions",
    max_locks_per_xact: "max_locks_per_transaction",
  }),
);

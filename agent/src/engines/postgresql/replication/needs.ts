import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { roleOf } from "../../members.ts";
import { dataDirectory, program } from "../layout.ts";
import { controlSettings, type RequiredSettings } from "../required-settings.ts";

const environment = { LC_ALL: "C", TZ: "UTC" };

/**
 * What an engine has at least to start with these data: a replica as much as the primary of the log that it replayed last, any
 * other room for the transactions that are prepared in the data.
 */
export async function needs({ run }: EngineDeps, instance: Instance, signal: AbortSignal): Promise<RequiredSettings> {
  if (roleOf(instance.spec) !== "replica") return preparedIn(dataDirectory(instance));
  const argv = [program(instance, "pg_controldata"), dataDirectory(instance)];
  return controlSettings(await run(argv, { env: environment, signal }));
}

/** An engine that was stopped has each of its prepared transactions in a file. */
async function preparedIn(data: string): Promise<RequiredSettings> {
  try {
    return { max_prepared_transactions: (await readdir(join(data, "pg_twophase"))).length };
  } catch (error) {
    if (hasCode(error, "ENOENT")) return {};
    throw error;
  }
}

import { rm } from "node:fs/promises";
import { join } from "node:path";
import { writeDurably } from "@holdfast/common/durable-file.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { type PrivateProcess, startPrivateProcess, withPrivateProcess } from "../../private-process.ts";
import { command } from "../command.ts";
import { configDirectory, settingsName } from "../layout.ts";
import { isStarting, requireSecurity } from "../ready.ts";
import { loggingSettings, settingsText } from "../render.ts";

/** A start recovers all shards. */
const startWithinMs = 6 * 3_600_000;
const answersWithinMs = 5_000;

/**
 * Runs the engine on its data while no front admits clients. The agent renders the settings only after a restore, so
 * files of the same names take the place of the links to them.
 */
export async function withPrivateEngine<T>(
  deps: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const files = { [settingsName]: settingsText(instance), "log4j2.properties": loggingSettings };
  const paths = Object.keys(files).map((name) => join(configDirectory(instance), name));
  const remove = () => Promise.all(paths.map((path) => rm(path, { force: true })));
  await remove();
  for (const [name, text] of Object.entries(files))
    await writeDurably(join(configDirectory(instance), name), text, 0o640);
  const { argv, env } = command(instance);
  const engine: PrivateProcess = await startPrivateProcess(
    deps,
    { argv, env, serves: (until) => serves(instance, until), withinMs: startWithinMs },
    signal,
  );
  const result = await withPrivateProcess(engine, work);
  await remove();
  return result;
}

async function serves(instance: Instance, signal: AbortSignal): Promise<boolean> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(answersWithinMs)]);
  try {
    await requireSecurity(instance, limit);
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (limit.aborted || isStarting(error)) return false;
    throw error;
  }
}

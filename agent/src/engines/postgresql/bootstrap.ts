import { existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { Instance } from "../engine-driver.ts";
import type { RunProgram } from "../../os/program.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { dataDirectory, platform, program, programsOf } from "./layout.ts";
import { platformSql, template0Sql } from "./platform-sql.ts";
import { runSingleUser } from "./single-user.ts";

/**
 * Creates the data directory by initdb, so that each has its own system identifier, with everything that does not
 * depend on the service. The directory appears complete or not at all; an interrupted one is created again.
 */
export async function bootstrap(
  { runAsEngine: run }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<void> {
  const directory = dataDirectory(instance);
  if (existsSync(join(directory, "PG_VERSION"))) return;
  const partial = `${directory}.partial`;
  await run(["rm", "-rf", partial], { signal });
  const { version } = instance.spec;
  await run([program(instance, "initdb"), `--pgdata=${partial}`, ...initdbOptions(version)], { signal });
  const settings = { log_checkpoints: "off", wal_level: "replica" };
  const data = { directory: partial, programs: programsOf(instance, version), settings };
  const inside = (database: string, sql: string) => runSingleUser(run, data, { database, sql }, signal);
  await inside("template1", platformSql(version));
  await inside("template0", template0Sql());
  await syncAll(run, instance, partial, signal);
  await rename(partial, directory);
  await syncPath(instance.paths.data);
}

/** Syncs the data disk. It is a separate file system, so one syncfs is faster than one fsync for each file. */
export async function syncAll(
  run: RunProgram,
  instance: Instance,
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  const method = Number(instance.spec.version) >= 17 ? ["--sync-method=syncfs"] : [];
  await run([program(instance, "initdb"), "--sync-only", ...method, `--pgdata=${directory}`], { signal });
}

export function initdbOptions(version: string): string[] {
  const common = [
    "--no-sync",
    "--no-instructions",
    // The agent's user is in the engine's group: it may read and not write.
    "--allow-group-access",
    `--username=${platform}`,
    "--auth-local=peer",
    "--auth-host=scram-sha-256",
    "--data-checksums",
    "--encoding=UTF8",
    "--locale=C.UTF-8",
  ];
  // The order of the builtin provider (since 17) does not change with the system's C library.
  return Number(version) >= 17 ? [...common, "--locale-provider=builtin", "--builtin-locale=C.UTF-8"] : common;
}

import { existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { Instance } from "../engine-driver.ts";
import { ProgramFailed } from "../../host/run-program.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { dataDirectory, platform, program } from "./layout.ts";
import { platformSql, template0Sql } from "./platform-sql.ts";

/**
 * Makes the data directory by a real initdb, so that each has its own system identifier, with all inside that does not
 * depend on the service. It appears whole or not at all: an interrupted one is made again.
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
  const inside = async (database: string, input: string) => {
    const options = ["--single", "-F", "-j", "-D", partial, ...quiet, database];
    const output = await run([program(instance, "postgres"), ...options], { signal, input });
    // Single-user mode goes on after an error and ends well.
    if (/(ERROR|FATAL|PANIC):/.test(output)) throw new ProgramFailed("postgres --single", "refused", errorsOf(output));
  };
  await inside("template1", platformSql(version));
  await inside("template0", template0Sql());
  // The data disk is a file system of its own: one call for all of it is quicker than one for each of a thousand files.
  const method = Number(version) >= 17 ? ["--sync-method=syncfs"] : [];
  await run([program(instance, "initdb"), "--sync-only", ...method, `--pgdata=${partial}`], { signal });
  await rename(partial, directory);
  await syncPath(instance.paths.data);
}

const quiet = ["-c", "log_checkpoints=off", "-c", "wal_level=replica"];

function initdbOptions(version: string): string[] {
  const common = [
    "--no-sync",
    "--no-instructions",
    // The agent's user is of the engine's group: it looks, and changes nothing.
    "--allow-group-access",
    `--username=${platform}`,
    "--auth-local=peer",
    "--auth-host=scram-sha-256",
    "--data-checksums",
    "--encoding=UTF8",
    "--locale=C.UTF-8",
  ];
  // The builtin provider's order never changes with the system's C library; it came with 17.
  return Number(version) >= 17 ? [...common, "--locale-provider=builtin", "--builtin-locale=C.UTF-8"] : common;
}

function errorsOf(output: string): string {
  return output
    .split("\n")
    .filter((line) => /ERROR|FATAL|PANIC|DETAIL|STATEMENT/.test(line))
    .join("\n");
}

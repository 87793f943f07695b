import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { ownMember, roleOf } from "../../members.ts";
import { keyFiles, updateKeyCopy } from "../key-copy.ts";
import { dataDirectory, program, programsOf } from "../layout.ts";
import { memberName, primaryConninfo } from "./members.ts";
import { controlSettings, type RequiredSettings } from "../required-settings.ts";
import { versionOf } from "../upgrade/directories.ts";
import type { ShutdownPosition } from "../../replication-facet.ts";

const standbySignal = "standby.signal";

/** Data that follow a primary contain `standby.signal`, with which PostgreSQL accepts no writes. */
export async function dataRole(instance: Instance): Promise<"follower" | "primary" | "absent"> {
  const directory = dataDirectory(instance);
  if (!existsSync(join(directory, "PG_VERSION"))) return "absent";
  return existsSync(join(directory, standbySignal)) ? "follower" : "primary";
}

/** Copies the primary's data. Removes the old data first to save space. The copy appears complete or not at all. */
export async function copy(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const { runAsEngine: run } = deps;
  const conninfo = primaryConninfo(instance);
  const member = ownMember(instance);
  if (conninfo === undefined || member === undefined) throw new Error("a primary cannot copy another member's data");
  const directory = dataDirectory(instance);
  const partial = `${directory}.partial`;
  await updateKeyCopy(deps, keyFiles(instance), signal);
  await run(["rm", "-rf", directory, partial], { signal });
  const options = [
    `--pgdata=${partial}`,
    // A different name, so that an unfinished copy does not count as a synchronous replica: it could not be promoted.
    `--dbname=${conninfo.replace(memberName(member.number), `${memberName(member.number)}_copy`)}`,
    "--wal-method=stream",
    `--slot=${memberName(member.number)}`,
    "--checkpoint=fast",
    "--no-password",
    // The primary would write the manifest to a temporary file, whose size users may limit.
    "--no-manifest",
  ];
  await run([program(instance, "pg_basebackup"), ...options], { env: { LC_ALL: "C", TZ: "UTC" }, signal });
  await run(["touch", join(partial, standbySignal)], { signal });
  await run(["mv", partial, directory], { signal });
  await syncPath(directory);
  await syncPath(instance.paths.data);
}

const environment = { LC_ALL: "C", TZ: "UTC" };

/**
 * Runs pg_rewind, which changes nothing if the primary has all of this log and first recovers an engine that was
 * killed.
 */
export async function rewind(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const { runAsEngine: run } = deps;
  const conninfo = primaryConninfo(instance);
  if (conninfo === undefined) throw new Error("a primary cannot be rewound");
  const directory = dataDirectory(instance);
  await updateKeyCopy(deps, keyFiles(instance), signal);
  const options = [
    `--target-pgdata=${directory}`,
    `--source-server=${conninfo}`,
    `--config-file=${instance.paths.config}/postgresql.conf`,
  ];
  await run([program(instance, "pg_rewind"), ...options], { env: environment, signal });
  await run(["touch", join(directory, standbySignal)], { signal });
  await syncPath(directory);
}

/**
 * Position of the checkpoint of a clean shutdown, which is the last record. The settings may name a version of the next
 * image already, so pg_controldata of the data's own version is used.
 */
export async function shutdownPosition(
  { run }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<ShutdownPosition | undefined> {
  const version = (await versionOf(instance)) ?? instance.spec.version;
  const output = await run([join(programsOf(instance, version), "pg_controldata"), dataDirectory(instance)], {
    env: environment,
    signal,
  });
  if (!/^Database cluster state:\s+shut down$/m.test(output)) return undefined;
  const position = /^Latest checkpoint location:\s+(\S+)$/m.exec(output)?.[1];
  return position === undefined ? undefined : { position };
}

/**
 * Minimum parameters of an engine that starts with these data: for a replica, the parameters of the primary whose log
 * it replayed last; otherwise `max_prepared_transactions` for the prepared transactions in the data.
 */
export async function requiredParameters(
  { run }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<RequiredSettings> {
  if (roleOf(instance.spec) !== "replica") return preparedIn(dataDirectory(instance));
  const argv = [program(instance, "pg_controldata"), dataDirectory(instance)];
  return controlSettings(await run(argv, { env: environment, signal }));
}

/** A stopped engine has one file for each of its prepared transactions. */
async function preparedIn(data: string): Promise<RequiredSettings> {
  try {
    return { max_prepared_transactions: (await readdir(join(data, "pg_twophase"))).length };
  } catch (error) {
    if (hasCode(error, "ENOENT")) return {};
    throw error;
  }
}

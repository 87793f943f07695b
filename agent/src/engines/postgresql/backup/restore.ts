import { appendFile, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { ProgramFailed } from "../../../os/program.ts";
import {
  type RecoveryEnd,
  type RecoveryPlan,
  type RecoveryTarget,
  type RestoreFacet,
  TargetNotReached,
} from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { invalidReason, listDatabases } from "../database-list.ts";
import { dataDirectory } from "../layout.ts";
import { exceeds, maxSettings, lackingSettings, printSettings, type RequiredSettings } from "../required-settings.ts";
import { createLogStaging } from "./log-staging.ts";
import { formatLsn } from "./lsn.ts";
import { type PrivateServer, type RecoveryDeps, startPrivateServer } from "./private-server.ts";
import { resetPasswords, detachCopy } from "./detach-copy.ts";
import { baseStream } from "./base-backup.ts";
import { backupStartOf, stopPoint } from "./stop-point.ts";

const pollIntervalMs = 100;
/** Maximum number of starts, each with higher settings than the one before. */
const maxStarts = 100;

export function createRestore(deps: RecoveryDeps): RestoreFacet {
  return {
    unpack: (instance, stream, bytes, signal) => unpack(deps, instance, stream, bytes, signal),
    finish: (instance, plan, signal) => finish(deps, instance, plan, signal),
  };
}

async function unpack(
  { pipe }: EngineDeps,
  instance: Instance,
  stream: string,
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  if (stream !== baseStream) throw new Error(`a backup of PostgreSQL has no ${stream}`);
  const directory = dataDirectory(instance);
  await mkdir(directory, { recursive: true, mode: 0o750 });
  const tar = pipe(["tar", "--extract", "--file=-", `--directory=${directory}`, "--no-same-owner"], {
    input: bytes,
    signal,
  });
  for await (const _ of tar.output);
  await tar.ended;
}

async function finish(
  deps: RecoveryDeps,
  instance: Instance,
  plan: RecoveryPlan,
  signal: AbortSignal,
): Promise<RecoveryEnd> {
  const { target, scratch } = plan;
  const data = dataDirectory(instance);
  await rm(scratch, { recursive: true, force: true });
  await mkdir(scratch, { recursive: true, mode: 0o700 });
  // Settings that users wrote there must not apply to this server. The file is part of the users' data, so it remains.
  await appendFile(join(data, "postgresql.auto.conf"), "");
  const staging = await createLogStaging(join(scratch, "log"), join(data, "pg_wal"), plan.log);
  const stop = target.kind === "time" ? await stopPoint(plan.log, target.time, await backupStartOf(data)) : undefined;
  await writeFile(join(data, "recovery.signal"), "");
  const serving = new AbortController();
  const until = AbortSignal.any([signal, serving.signal]);
  const served = staging.serve(until);
  const readFailure = served.then(() => new Promise<never>(() => undefined));
  readFailure.catch(() => undefined);
  const recovery = { restore_command: staging.command, ...targetSettings(target, staging.timeline, stop) };
  try {
    // If the log does not record its settings, or its end is unreadable, start anyway: the engine reports what it
    // lacks.
    let required: RequiredSettings = (await plan.log?.settings().catch(() => undefined)) ?? {};
    for (let start = 1; ; start += 1) {
      signal.throwIfAborted();
      const server = await startPrivateServer(deps, instance, { scratch, recovery, log: required }, signal);
      try {
        const reached = await Promise.race([recover(server, plan, signal), readFailure]);
        plan.report({ ...reached, step: "severing" });
        const lockedUsers = plan.isSameService
          ? await resetPasswords(server, instance)
          : await detachCopy(server, instance);
        const { invalid } = await listDatabases(server);
        await server.stop();
        await syncPath(data);
        return { ...reached, lockedUsers, warnings: invalid.length === 0 ? [] : [invalidReason(invalid)] };
      } catch (error) {
        await server.kill();
        const raised = raisedBy(error, required);
        if (raised === undefined || start === maxStarts) throw error;
        required = raised;
      }
    }
  } catch (error) {
    // An error of reading the log is a better reason than the engine's exit.
    await Promise.race([readFailure, sleep(0)]);
    throw explained(error, target);
  } finally {
    serving.abort();
    await served.catch(() => undefined);
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Settings for the next attempt after the engine lacked some; undefined if it ended for another reason. */
function raisedBy(error: unknown, required: RequiredSettings): RequiredSettings | undefined {
  const lacking = error instanceof ProgramFailed ? lackingSettings(error.output) : undefined;
  return lacking === undefined || !exceeds(lacking, required) ? undefined : maxSettings(required, lacking);
}

/** `stop`: last record to replay for a target by time, if it was found. */
function targetSettings(
  target: RecoveryTarget,
  logTimeline: string | undefined,
  stop: bigint | undefined,
): Record<string, string> {
  const timeline = { recovery_target_timeline: logTimeline ?? "current" };
  switch (target.kind) {
    case "backup_end":
      return { ...timeline, recovery_target: "immediate", recovery_target_action: "pause" };
    case "time":
      if (stop !== undefined)
        return {
          ...timeline,
          // Replay stops before the record that follows. An engine that stops at the record itself does not report its
          // time.
          recovery_target_lsn: formatLsn(stop + 1n),
          recovery_target_inclusive: "off",
          recovery_target_action: "pause",
        };
      return {
        ...timeline,
        // Without an offset the time would be read in the server's time zone.
        recovery_target_time: target.time.toISOString().replace("T", " ").replace("Z", "+00"),
        recovery_target_inclusive: "on",
        recovery_target_action: "pause",
      };
    case "log_end":
      return timeline;
  }
}

interface Reached {
  readonly position: string;
  readonly reachedTime: Date | undefined;
}

/** Resolves when the engine has ended recovery exactly at the target. */
async function recover(server: PrivateServer, { target, report }: RecoveryPlan, signal: AbortSignal): Promise<Reached> {
  let last: Reached = { position: "", reachedTime: undefined };
  for (;;) {
    const [row] = await server.rows<{ recovering: boolean; paused: string; position: string; time: Date | null }>(
      `SELECT pg_is_in_recovery() AS recovering,
         CASE WHEN pg_is_in_recovery() THEN pg_get_wal_replay_pause_state() ELSE '' END AS paused,
         coalesce(pg_last_wal_replay_lsn()::text, '') AS position, pg_last_xact_replay_timestamp() AS time`,
    );
    if (row === undefined) throw new Error("a SELECT without FROM gave no row");
    last = { position: row.position, reachedTime: row.time ?? last.reachedTime };
    report({ step: "recovering", ...last });
    if (!row.recovering) {
      if (target.kind === "time") throw new TargetNotReached("The recovery ended before the target.");
      return last;
    }
    if (row.paused === "paused") {
      if (target.kind === "time" && row.time !== null && row.time > target.time) {
        throw new TargetNotReached(`The recovery continued to ${row.time.toISOString()}, beyond the target.`);
      }
      break;
    }
    await sleep(pollIntervalMs, undefined, { signal });
  }
  await server.rows("SELECT pg_wal_replay_resume()");
  for (;;) {
    const [row] = await server.rows<{ recovering: boolean }>("SELECT pg_is_in_recovery() AS recovering");
    if (row?.recovering === false) return last;
    await sleep(pollIntervalMs, undefined, { signal });
  }
}

/** Converts the error of an engine that ended the recovery by itself, if its last lines show an unreachable target. */
function explained(error: unknown, target: RecoveryTarget): unknown {
  if (!(error instanceof ProgramFailed)) return error;
  const lacking = lackingSettings(error.output);
  if (lacking !== undefined)
    return new TargetNotReached(`Replay of the log needs ${printSettings(lacking)}.`, { cause: error });
  if (/recovery ended before configured recovery target was reached/.test(error.output)) {
    const until = target.kind === "time" ? ` ${target.time.toISOString()}` : "";
    return new TargetNotReached(`The log ends before the target${until}.`, { cause: error });
  }
  if (/requested recovery stop point is before consistent recovery point/.test(error.output)) {
    return new TargetNotReached("The target is before the end of the backup.", { cause: error });
  }
  return error;
}

import { effectiveParameters } from "../effective-parameters.ts";
import type { EngineCheck, EngineObservation, Instance } from "../engine-driver.ts";
import { roleOf } from "../members.ts";
import type { LogicalSlot } from "../replication-facet.ts";
import { activityChecks, readActivity } from "./activity-checks.ts";
import { endForbiddenSessions } from "./allow-list.ts";
import { keepUnarchived } from "./backup/archive-note.ts";
import type { DataSize } from "./data-size.ts";
import { invalidReason, listDatabases } from "./database-list.ts";
import { platform } from "./layout.ts";
import type { Pooler } from "./pooler/pooler.ts";
import { followingState, readStatus } from "./replication/status.ts";
import { codeOf, isOwn, messageOf, type Session, withSession } from "./session.ts";

const probeMs = 2_000;

/**
 * Fresh from the engine, through a new session each time: one that is open already would not see that nobody gets in. A
 * probe that fails is an answer. "Too many clients", "disk full" and "recovering" never mean dead.
 */
export async function observe(
  { dataSize, pooler }: { readonly dataSize: DataSize; readonly pooler: Pick<Pooler, "check"> },
  instance: Instance,
  signal: AbortSignal,
): Promise<EngineObservation> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(probeMs + 500)]);
  // What is read after that is slow for reasons of its own.
  let answered = false;
  const onAnswer = () => {
    answered = true;
  };
  try {
    const looked = await withSession(instance, bounded, (session) => look(instance, session, onAnswer), {
      statementMs: probeMs,
      // A primary that waits for its replicas is alive.
      isLocal: true,
    });
    const pooled = await pooler.check(instance, bounded);
    const checks = pooled === undefined ? looked.checks : [...looked.checks, pooled];
    return { ...looked, checks, dataBytes: await dataSize.newest(instance) };
  } catch (error) {
    signal.throwIfAborted();
    const check = bounded.aborted ? unhealthy(`no answer in ${probeMs} ms`) : verdict(error);
    answered ||= !bounded.aborted && isAnswer(error);
    return { answered, version: "", checks: [check], pendingRestart: [], effectiveParameters: {}, dataBytes: 0 };
  }
}

async function look(
  instance: Instance,
  session: Session,
  onAnswer: () => void,
): Promise<Omit<EngineObservation, "dataBytes">> {
  const following = roleOf(instance.spec) === "replica";
  // A primary that came back with more of some settings has its replicas pause: they end when told to go on, and start
  // with as much.
  if (following) {
    await session.rows(resumeReplay);
    await keepUnarchived(session);
  } else await session.rows(`UPDATE ${platform}.heartbeat SET at = clock_timestamp()`);
  onAnswer();
  await endForbiddenSessions(session, instance.spec);
  const [row] = await session.rows<{ version: string; pending: string[]; settings: [string, string][] }>(
    `SELECT current_setting('server_version') AS version,
       ARRAY (SELECT name FROM pg_settings WHERE pending_restart ORDER BY name) AS pending,
       ARRAY (SELECT ARRAY[name, current_setting(name)] FROM pg_settings WHERE name = ANY ($1::text[])) AS settings`,
    [[...effectiveParameters(instance).keys()]],
  );
  if (row === undefined) throw new Error("a SELECT without FROM gave no row");
  const replication = instance.spec.replication === undefined ? undefined : await lookAtReplication(session);
  return {
    answered: true,
    version: row.version.split(" ")[0] ?? "",
    checks: [
      { name: "liveness", status: "healthy", reason: "" },
      ...(replication?.checks ?? []),
      ...activityChecks(await readActivity(session), instance.spec.platformAccess.length > 0),
      // A replica sees a DROP DATABASE that is under way as one that ended halfway.
      ...(following ? [] : [databasesCheck((await listDatabases(session)).invalid)]),
    ],
    pendingRestart: following ? row.pending : [...row.pending, ...raised(instance)],
    effectiveParameters: Object.fromEntries([...row.settings, ...pinnedHere(instance)]),
    ...(replication && { replication: replication.told }),
  };
}

const resumeReplay = `SELECT CASE WHEN pg_is_in_recovery() AND pg_get_wal_replay_pause_state() = 'paused' THEN pg_wal_replay_resume() END`;

/**
 * All but those that go with their session, which are nobody's loss: as many as `max_replication_slots` allows, which
 * users do not set.
 */
const logicalSlots = `SELECT slot_name AS name, database, plugin FROM pg_replication_slots
  WHERE slot_type = 'logical' AND NOT temporary ORDER BY slot_name`;

function databasesCheck(invalid: readonly string[]): EngineCheck {
  const name = "databases";
  if (invalid.length === 0) return { name, status: "healthy", reason: "" };
  return { name, status: "degraded", reason: invalidReason(invalid) };
}

/** By what the engine is, whatever it is to be. */
async function lookAtReplication(session: Session): Promise<{
  readonly told: NonNullable<EngineObservation["replication"]>;
  readonly checks: readonly EngineCheck[];
}> {
  const status = await readStatus(session);
  if (status.role === "primary")
    return { told: { role: "primary", logicalSlots: await session.rows<LogicalSlot>(logicalSlots) }, checks: [] };
  const state = followingState(status);
  return { told: { role: "replica", state, received: status.position }, checks: [replicationCheck(state)] };
}

function replicationCheck(state: ReturnType<typeof followingState>): EngineCheck {
  if (state !== "disconnected") return { name: "replication", status: "healthy", reason: "" };
  return { name: "replication", status: "unhealthy", reason: "The replica is not connected to its primary." };
}

/** Parameters that the data of the last start needed more of than the settings say: they fall with a later restart. */
function raised({ spec, atLeast = {} }: Instance): string[] {
  const wanted = effectiveParameters({ spec });
  return Object.entries(atLeast).flatMap(([name, least]) => (Number(wanted.get(name)) < least ? [name] : []));
}

/** What this session cannot see of the engine, as it was rendered. */
function pinnedHere(instance: Instance): [string, string][] {
  return [...effectiveParameters(instance)].filter(([name]) => isOwn(name));
}

/**
 * Pure: does the engine itself say this, and can it go on? Classes of SQLSTATE that say that it cannot: a system error, damaged data, an
 * internal error. One whose write is cancelled by its limit of time may have a disk that hangs, and a session that is ended an engine that
 * ends.
 */
function isAnswer(error: unknown): boolean {
  const code = codeOf(error);
  const isState = /^(?=.*\d)[0-9A-Z]{5}$/.test(code);
  return isState && (isFull(error) || !/^(58|XX|F0|57014|57P0[12])/.test(code));
}

/** Pure: what a failed probe says of the engine. */
function verdict(error: unknown): EngineCheck {
  const code = codeOf(error);
  const message = messageOf(error);
  if (code === "53300") return { name: "liveness", status: "degraded", reason: "too many clients" };
  if (isFull(error)) return unhealthy("disk full");
  if (code === "57P03") return { name: "liveness", status: "degraded", reason: "recovering" };
  if (code === "25006") return { name: "liveness", status: "degraded", reason: "read only" };
  if (code === "57P01" || code === "57P02") return unhealthy("shutting down");
  if (code === "ENOENT" || code === "ECONNREFUSED") return unhealthy("nobody listens");
  return unhealthy(message);
}

function isFull(error: unknown): boolean {
  return codeOf(error) === "53100" || /No space left on device/.test(messageOf(error));
}

function unhealthy(reason: string): EngineCheck {
  return { name: "liveness", status: "unhealthy", reason };
}

import { effectiveParameters } from "../effective-parameters.ts";
import type { EngineCheck, EngineObservation, Instance } from "../engine-driver.ts";
import { roleOf } from "../members.ts";
import type { LogicalSlots } from "../replication-facet.ts";
import { activityChecks, readActivity } from "./activity-checks.ts";
import { endForbiddenSessions } from "./allow-list.ts";
import { retainUnarchived } from "./backup/archive-state.ts";
import type { DataSize } from "./data-size.ts";
import { type DatabaseList, invalidReason, limitedReason, listDatabases } from "./database-list.ts";
import { platform } from "./layout.ts";
import type { Pooler } from "./pooler/pooler.ts";
import { resetPreloadSettings } from "./preload-settings.ts";
import { followingState, readStatus } from "./replication/status.ts";
import { codeOf, isOverridden, messageOf, type Session, withSession } from "./session.ts";

const probeTimeoutMs = 2_000;

/**
 * Reads the engine's state through a new session each time, since an open one would not notice that no client can
 * connect. A failed probe is a result: "too many clients", "disk full" and "recovering" do not mean that the engine is
 * down.
 */
export async function observe(
  { dataSize, pooler }: { readonly dataSize: DataSize; readonly pooler: Pick<Pooler, "check"> },
  instance: Instance,
  signal: AbortSignal,
): Promise<EngineObservation> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(probeTimeoutMs + 500)]);
  // Set before the slower queries, whose duration says nothing about the engine's health.
  let hasResponded = false;
  const onResponse = () => {
    hasResponded = true;
  };
  try {
    const observed = await withSession(instance, bounded, (session) => readEngine(instance, session, onResponse), {
      statementMs: probeTimeoutMs,
      // A primary that waits for its replicas is healthy.
      isLocal: true,
    });
    const poolerCheck = await pooler.check(instance, bounded);
    const checks = poolerCheck === undefined ? observed.checks : [...observed.checks, poolerCheck];
    return { ...observed, checks, dataBytes: await dataSize.newest(instance) };
  } catch (error) {
    signal.throwIfAborted();
    const check = bounded.aborted
      ? unhealthy(`The engine did not respond within ${probeTimeoutMs / 1_000} s.`)
      : livenessFailure(error);
    hasResponded ||= !bounded.aborted && isEngineResponse(error);
    return {
      responded: hasResponded,
      version: "",
      checks: [check],
      pendingRestart: [],
      effectiveParameters: {},
      dataBytes: 0,
    };
  }
}

async function readEngine(
  instance: Instance,
  session: Session,
  onResponse: () => void,
): Promise<Omit<EngineObservation, "dataBytes">> {
  const following = roleOf(instance.spec) === "replica";
  // Replay pauses on a replica when its primary restarted with higher settings. Once resumed, the replica shuts down
  // and starts with the same settings.
  if (following) {
    await session.rows(resumeReplay);
    await retainUnarchived(session);
  } else await session.rows(`UPDATE ${platform}.heartbeat SET at = clock_timestamp()`);
  onResponse();
  await endForbiddenSessions(session, instance.spec);
  if (!following) await resetPreloadSettings(session);
  const [row] = await session.rows<{ version: string; pending: string[]; settings: [string, string][] }>(
    `SELECT current_setting('server_version') AS version,
       ARRAY (SELECT name FROM pg_settings WHERE pending_restart ORDER BY name) AS pending,
       ARRAY (SELECT ARRAY[name, current_setting(name)] FROM pg_settings WHERE name = ANY ($1::text[])) AS settings`,
    [[...effectiveParameters(instance).keys()]],
  );
  if (row === undefined) throw new Error("a SELECT without FROM gave no row");
  const replication = instance.spec.replication === undefined ? undefined : await observeReplication(session);
  const logical = following ? undefined : await readLogicalSlots(session);
  const { engine, platformAccess } = instance.spec;
  return {
    responded: true,
    version: row.version.split(" ")[0] ?? "",
    checks: [
      { name: "liveness", status: "healthy", reason: "" },
      ...(replication?.checks ?? []),
      ...activityChecks(await readActivity(session), { engine, hasIssuers: platformAccess.length > 0 }),
      // A replica sees a DROP DATABASE in progress like an interrupted one.
      ...(following ? [] : [databasesCheck(await listDatabases(session))]),
      ...(logical?.check === undefined ? [] : [logical.check]),
    ],
    pendingRestart: following ? row.pending : [...row.pending, ...raisedParameters(instance)],
    effectiveParameters: Object.fromEntries([...row.settings, ...pinnedParameters(instance)]),
    ...(replication && { replication: replication.reported }),
    ...(logical && { logicalSlots: logical.slots }),
  };
}

const resumeReplay = `SELECT CASE WHEN pg_is_in_recovery() AND pg_get_wal_replay_pause_state() = 'paused' THEN pg_wal_replay_resume() END`;

function databasesCheck({ invalid, limited }: DatabaseList): EngineCheck {
  const reasons = [
    ...(invalid.length > 0 ? [invalidReason(invalid)] : []),
    ...(limited.length > 0 ? [limitedReason(limited)] : []),
  ];
  return { name: "databases", status: reasons.length === 0 ? "healthy" : "degraded", reason: reasons.join(" ") };
}

/** Reports the engine's current role, which may differ from the desired one. */
async function observeReplication(session: Session): Promise<{
  readonly reported: NonNullable<EngineObservation["replication"]>;
  readonly checks: readonly EngineCheck[];
}> {
  const status = await readStatus(session);
  if (status.role === "primary") return { reported: { role: "primary" }, checks: [] };
  const state = followingState(status);
  return { reported: { role: "replica", state, received: status.position }, checks: [replicationCheck(state)] };
}

function replicationCheck(state: ReturnType<typeof followingState>): EngineCheck {
  if (state !== "disconnected") return { name: "replication", status: "healthy", reason: "" };
  return { name: "replication", status: "unhealthy", reason: "The replica is not connected to its primary." };
}

/** Parameters that the last start raised above the settings, as its data required; a later restart lowers them. */
function raisedParameters({ spec, minimumParameters = {} }: Instance): string[] {
  const desired = effectiveParameters({ spec });
  return Object.entries(minimumParameters).flatMap(([name, least]) =>
    Number(desired.get(name)) < least ? [name] : [],
  );
}

/** Rendered values of the parameters that the platform's sessions override. */
function pinnedParameters(instance: Instance): [string, string][] {
  return [...effectiveParameters(instance)].filter(([name]) => isOverridden(name));
}

/**
 * True if the engine itself reports this error and can continue. Excluded are the SQLSTATE classes of system errors,
 * damaged data and internal errors; a canceled write, which may mean a hanging disk; and a terminated session, which
 * may mean a shutdown.
 */
function isEngineResponse(error: unknown): boolean {
  const code = codeOf(error);
  const isState = /^(?=.*\d)[0-9A-Z]{5}$/.test(code);
  return isState && (isFull(error) || !/^(58|XX|F0|57014|57P0[12])/.test(code));
}

/** The liveness check for a failed probe. */
function livenessFailure(error: unknown): EngineCheck {
  const code = codeOf(error);
  const message = messageOf(error);
  if (code === "53300") return { name: "liveness", status: "degraded", reason: "too many clients" };
  if (isFull(error)) return unhealthy("disk full");
  if (code === "57P03") return { name: "liveness", status: "degraded", reason: "The engine is recovering." };
  if (code === "25006") return { name: "liveness", status: "degraded", reason: "The engine is read-only." };
  if (code === "57P01" || code === "57P02") return unhealthy("The engine is shutting down.");
  if (code === "ENOENT" || code === "ECONNREFUSED") return unhealthy("The engine does not listen for connections.");
  return unhealthy(message);
}

function isFull(error: unknown): boolean {
  return codeOf(error) === "53100" || /No space left on device/.test(messageOf(error));
}

function unhealthy(reason: string): EngineCheck {
  return { name: "liveness", status: "unhealthy", reason };
}

/** Logical slots, except temporary ones, which end with their session. */
export interface ObservedSlots {
  readonly slots: LogicalSlots;
  /** Undefined without slots. */
  readonly check: EngineCheck | undefined;
}

/** Share of the log that a slot may retain from which on the check is degraded. */
const degradedFrom = 0.5;

/*
 * At most `max_replication_slots` rows, which users cannot set. `safe_wal_size` is the log that can still be written
 * until a slot may be invalidated. An invalidated one has none, and is `lost` for each reason (manual,
 * pg_replication_slots).
 */
const slotsSql = `
  SELECT slot_name AS name, database, plugin, wal_status = 'lost' AS "isLost",
    coalesce(to_jsonb(s) ->> 'invalidation_reason', 'wal_removed') AS "lostReason",
    wal_status = 'unreserved' OR coalesce(safe_wal_size < (1 - $1::float8) * 1048576 *
      (SELECT nullif(setting::float8, -1) FROM pg_settings WHERE name = 'max_slot_wal_keep_size'), false) AS "isBehind"
  FROM pg_replication_slots s WHERE slot_type = 'logical' AND NOT temporary ORDER BY slot_name`;

interface SlotRow {
  readonly name: string;
  readonly database: string;
  readonly plugin: string;
  readonly isLost: boolean | null;
  readonly lostReason: string;
  readonly isBehind: boolean | null;
}

/** Reads the slots of an engine that takes writes. */
async function readLogicalSlots(session: Session): Promise<ObservedSlots> {
  const rows = await session.rows<SlotRow>(slotsSql, [degradedFrom]);
  const isLost = (row: SlotRow) => row.isLost === true;
  const identity = ({ name, database, plugin }: SlotRow) => ({ name, database, plugin });
  return {
    slots: {
      usable: rows.filter((row) => !isLost(row)).map(identity),
      lost: rows.filter(isLost).map((row) => ({ ...identity(row), lostReason: row.lostReason })),
    },
    check: rows.length === 0 ? undefined : checkOf(rows),
  };
}

/** The reasons have no amounts, so that the check changes only when a slot does. */
function checkOf(rows: readonly SlotRow[]): EngineCheck {
  const lost = rows.filter(({ isLost }) => isLost === true);
  const behind = rows.filter(({ isLost, isBehind }) => isLost !== true && isBehind === true);
  const list = (slots: readonly SlotRow[]) => slots.map(({ name }) => name).join(", ");
  const reasons = [
    ...(lost.length === 0
      ? []
      : [`Lost logical slots: ${list(lost)}. Drop them; their consumers must copy their data again.`]),
    ...(behind.length === 0
      ? []
      : [
          `Logical slots that retain half of the log that they may, or more: ${list(behind)}. ` +
            "Let their consumers confirm changes, or drop them, before they are lost.",
        ]),
  ];
  return { name: "logical_slots", status: reasons.length === 0 ? "healthy" : "degraded", reason: reasons.join(" ") };
}

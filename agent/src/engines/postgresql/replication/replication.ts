import { setTimeout as sleep } from "node:timers/promises";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { otherMembers, roleOf } from "../../members.ts";
import { platform, replicaRole } from "../layout.ts";
import { saveDiscarded } from "./discarded.ts";
import { copy, dataRole, requiredParameters, rewind, shutdownPosition } from "./follow.ts";
import { memberName, slotPrefix, synchronizesSlots } from "./members.ts";
import { status } from "./status.ts";
import { type Session, withSession } from "../session.ts";
import type { ReplicationFacet } from "../../replication-facet.ts";
import { archiveSlot, hasArchiveState, retainUnarchived } from "../backup/archive-state.ts";
import { putPlatformRole } from "../platform-role.ts";

/**
 * Streaming replication. Members authenticate by certificate, and each has a physical slot on the primary. Data that
 * follow a primary are marked by `standby.signal` (follow.ts); a former primary is rewound by pg_rewind after its
 * surplus log was saved (discarded.ts).
 */
export function createReplication(deps: EngineDeps): ReplicationFacet {
  return {
    dataRole,
    copy: (instance, signal) => copy(deps, instance, signal),
    rewind: (instance, signal) => rewind(deps, instance, signal),
    saveDiscarded: (instance, target, signal) => saveDiscarded(deps, instance, target, signal),
    admit,
    prepareStop,
    confirm,
    requiredParameters: (instance, signal) => requiredParameters(deps, instance, signal),
    shutdownPosition: (instance, signal) => shutdownPosition(deps, instance, signal),
    status,
  };
}

const statementMs = 2_000;
const pollIntervalMs = 50;

/**
 * Writes a record and waits until each of these members has received it, which proves that each was this primary's
 * replica when this was called. Rejects if the signal aborts first.
 */
async function confirm(instance: Instance, numbers: readonly number[], signal: AbortSignal): Promise<boolean> {
  return withSession(
    instance,
    signal,
    async (session) => {
      await session.rows(`UPDATE ${platform}.heartbeat SET at = clock_timestamp()`);
      const [record] = await session.rows<{ position: string }>("SELECT pg_current_wal_flush_lsn()::text AS position");
      for (;;) {
        const rows = await session.rows<{ name: string }>(
          `SELECT DISTINCT application_name AS name FROM pg_stat_replication
           WHERE usename = $1 AND flush_lsn >= $2::pg_lsn`,
          [replicaRole, record?.position],
        );
        const names = new Set(rows.map(({ name }) => name));
        if (numbers.every((number) => names.has(memberName(number)))) return true;
        await sleep(pollIntervalMs, undefined, { signal });
      }
    },
    // The write itself must not wait for the members that it queries.
    { statementMs, isLocal: true },
  );
}

/** Replay of the received log may take this long. */
const waitSeconds = 60;

/** Promotes a running replica; does nothing for an engine that accepts writes. Throws while it is still replaying. */
export async function becomePrimary(instance: Instance, signal: AbortSignal): Promise<void> {
  if (instance.spec.replication === undefined) return;
  await withSession(
    instance,
    signal,
    async (session) => {
      const [before] = await session.rows<{ recovering: boolean }>("SELECT pg_is_in_recovery() AS recovering");
      if (before?.recovering !== true) return;
      const [after] = await session.rows<{ promoted: boolean }>(`SELECT pg_promote(true, ${waitSeconds}) AS promoted`);
      if (after?.promoted !== true) throw new Error("The replica is still replaying received log.");
      // Before 16, pg_rewind of a follower reads the new timeline from the last checkpoint only.
      if (Number(instance.spec.version) < 16) await session.rows("CHECKPOINT");
    },
    { statementMs: (waitSeconds + 30) * 1_000 },
  );
}

/** The old primary has 30 s in all to stop. */
const withinMs = 10_000;

/** Writes a checkpoint while clients still write, so that the shutdown's own checkpoint is short. */
async function prepareStop(instance: Instance, signal: AbortSignal): Promise<void> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  // The shutdown follows even if the checkpoint fails.
  await withSession(instance, bounded, (session) => session.rows("CHECKPOINT"), { statementMs: withinMs }).catch(
    () => undefined,
  );
}

/** Functions that pg_rewind calls on its source server (PostgreSQL manual, "pg_rewind"). */
const rewindFunctions = [
  "pg_ls_dir(text, boolean, boolean)",
  "pg_stat_file(text, boolean)",
  "pg_read_binary_file(text)",
  "pg_read_binary_file(text, bigint, bigint, boolean)",
];

/** Creates the replication role, and a slot for each other member; drops the slots of former members. */
async function admit(instance: Instance, signal: AbortSignal): Promise<void> {
  // No replica can connect before this is done, so do not wait for one.
  const options = { isLocal: true } as const;
  await withSession(
    instance,
    signal,
    async (session) => {
      if (roleOf(instance.spec) === "primary") await prepareRole(session);
      await syncSlots(instance, session);
    },
    options,
  );
}

async function prepareRole(session: Session): Promise<void> {
  await putPlatformRole(session, {
    name: replicaRole,
    attributes: "LOGIN REPLICATION",
    isValid: `rolreplication AND rolcanlogin AND has_function_privilege(r.oid, '${rewindFunctions.at(-1)}', 'EXECUTE')`,
    grants: [
      `GRANT CONNECT ON DATABASE ${platform} TO ${replicaRole}`,
      ...rewindFunctions.map((reader) => `GRANT EXECUTE ON FUNCTION ${reader} TO ${replicaRole}`),
    ],
  });
}

async function syncSlots(instance: Instance, session: Session): Promise<void> {
  const isPrimary = roleOf(instance.spec) === "primary";
  const desired = isPrimary ? otherMembers(instance).map(({ number }) => memberName(number)) : [];
  // A replica retains unarchived log if there is an archive, which it may have to continue after a promotion.
  const retainsArchive = isPrimary || (await hasArchiveState(session));
  const rows = await session.rows<{ slot_name: string; active_pid: number | null }>(
    `SELECT slot_name, active_pid FROM pg_replication_slots
     WHERE slot_type = 'physical' AND (starts_with(slot_name, $1) OR (slot_name = $2 AND NOT $3))`,
    [slotPrefix, archiveSlot, retainsArchive],
  );
  for (const { slot_name: name, active_pid: pid } of rows.filter((row) => !desired.includes(row.slot_name))) {
    if (pid !== null) await session.rows("SELECT pg_terminate_backend($1, 5000)", [pid]);
    await session.rows("SELECT pg_drop_replication_slot($1)", [name]);
  }
  const existing = new Set(rows.map(({ slot_name: name }) => name));
  const missing = desired.filter((name) => !existing.has(name));
  for (const name of missing) await session.rows("SELECT pg_create_physical_replication_slot($1, true)", [name]);
  // A reload refuses synchronized_standby_slots with slots that do not exist yet.
  if (missing.length > 0 && synchronizesSlots(instance)) await session.rows("SELECT pg_reload_conf()");
  if (isPrimary) return;
  await retainUnarchived(session);
  if (synchronizesSlots(instance)) await dropOwnFailoverSlots(session);
}

/** Drops slots of a former primary that have the names of slots that it has to copy from the new one. */
async function dropOwnFailoverSlots(session: Session): Promise<void> {
  await session.rows(
    `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
     WHERE slot_type = 'logical' AND failover AND NOT synced AND NOT active`,
  );
}

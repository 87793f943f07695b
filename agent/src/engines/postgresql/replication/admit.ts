import type { Instance } from "../../engine-driver.ts";
import { otherMembers, roleOf } from "../../members.ts";
import { archiveSlot, hasArchiveState, retainUnarchived } from "../backup/archive-state.ts";
import { platform, replicaRole } from "../layout.ts";
import { putPlatformRole } from "../platform-role.ts";
import { type Session, withSession } from "../session.ts";
import { memberName, slotPrefix, synchronizesSlots } from "./members.ts";

/** Functions that pg_rewind calls on its source server (PostgreSQL manual, "pg_rewind"). */
const rewindFunctions = [
  "pg_ls_dir(text, boolean, boolean)",
  "pg_stat_file(text, boolean)",
  "pg_read_binary_file(text)",
  "pg_read_binary_file(text, bigint, bigint, boolean)",
];

/** Creates the replication role, and a slot for each other member; drops the slots of former members. */
export async function admit(instance: Instance, signal: AbortSignal): Promise<void> {
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

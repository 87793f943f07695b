import type { Instance } from "../../engine-driver.ts";
import { otherMembers, roleOf } from "../../members.ts";
import { archiveSlot, hasNote, keepUnarchived } from "../backup/archive-note.ts";
import { platform } from "../layout.ts";
import { ownRole } from "../own-role.ts";
import { type Session, withSession } from "../session.ts";
import { memberName, replicaRole, slotPrefix } from "./members.ts";

/** What pg_rewind asks of the server that it reads from. */
const readers = [
  "pg_ls_dir(text, boolean, boolean)",
  "pg_stat_file(text, boolean)",
  "pg_read_binary_file(text)",
  "pg_read_binary_file(text, bigint, bigint, boolean)",
];

/** The role is the members' alone, and a slot is there for each of them and for nobody who is gone. */
export async function admit(instance: Instance, signal: AbortSignal): Promise<void> {
  // A replica cannot come before this is done, so it waits for none.
  const options = { isLocal: true } as const;
  await withSession(
    instance,
    signal,
    async (session) => {
      if (roleOf(instance.spec) === "primary") await prepareRole(session);
      await keepSlots(instance, session);
    },
    options,
  );
}

async function prepareRole(session: Session): Promise<void> {
  await ownRole(session, {
    name: replicaRole,
    attributes: "LOGIN REPLICATION",
    isGood: `rolreplication AND rolcanlogin AND has_function_privilege(r.oid, '${readers.at(-1)}', 'EXECUTE')`,
    grants: [
      `GRANT CONNECT ON DATABASE ${platform} TO ${replicaRole}`,
      ...readers.map((reader) => `GRANT EXECUTE ON FUNCTION ${reader} TO ${replicaRole}`),
    ],
  });
}

async function keepSlots(instance: Instance, session: Session): Promise<void> {
  const isPrimary = roleOf(instance.spec) === "primary";
  const wanted = isPrimary ? otherMembers(instance).map(({ number }) => memberName(number)) : [];
  // A replica keeps what is not archived, where an archive is: it may have to go on with that.
  const keepsArchive = isPrimary || (await hasNote(session));
  const rows = await session.rows<{ slot_name: string; active_pid: number | null }>(
    `SELECT slot_name, active_pid FROM pg_replication_slots
     WHERE slot_type = 'physical' AND (starts_with(slot_name, $1) OR (slot_name = $2 AND NOT $3))`,
    [slotPrefix, archiveSlot, keepsArchive],
  );
  for (const { slot_name: name, active_pid: pid } of rows.filter((row) => !wanted.includes(row.slot_name))) {
    if (pid !== null) await session.rows("SELECT pg_terminate_backend($1, 5000)", [pid]);
    await session.rows("SELECT pg_drop_replication_slot($1)", [name]);
  }
  const there = new Set(rows.map(({ slot_name: name }) => name));
  for (const name of wanted.filter((each) => !there.has(each)))
    await session.rows("SELECT pg_create_physical_replication_slot($1, true)", [name]);
  if (!isPrimary) await keepUnarchived(session);
}

import type { Instance } from "../../instance.ts";
import { platform } from "../layout.ts";
import { type Session, withSession } from "../session.ts";

/**
 * Progress of the WAL archive, stored in a table and so in the log itself: a promoted replica has the position from
 * which the archive continues, and retains later log. The row may lag the store and is never ahead of it.
 */
const table = `${platform}.archive`;
/** Physical slot of the archive, on each member. It is not part of a base backup and does not move with a failover. */
export const archiveSlot = `${platform}_archive`;

const statementMs = 2_000;

const write = `INSERT INTO ${table} (position, state) VALUES ($1, $2)
  ON CONFLICT (one) DO UPDATE SET position = excluded.position, state = excluded.state`;

export async function saveArchiveState(
  instance: Instance,
  position: string,
  state: string,
  signal: AbortSignal,
): Promise<void> {
  const work = async (session: Session) => {
    // A failed statement would be an error in the log that users read.
    if (!(await hasArchiveState(session)))
      await session.rows(
        `CREATE TABLE ${table} (one boolean PRIMARY KEY DEFAULT true CHECK (one), position pg_lsn NOT NULL, state text NOT NULL)`,
      );
    await session.rows(write, [position, state]);
  };
  await withSession(instance, signal, work, { statementMs, isLocal: true });
}

/** State that was saved last; undefined if none was. */
export async function readArchiveState(instance: Instance, signal: AbortSignal): Promise<string | undefined> {
  return withSession(instance, signal, async (session) => {
    if (!(await hasArchiveState(session))) return undefined;
    const [row] = await session.rows<{ state: string }>(`SELECT state FROM ${table}`);
    return row?.state;
  });
}

export async function hasArchiveState(session: Session): Promise<boolean> {
  const [row] = await session.rows<{ there: boolean }>(`SELECT to_regclass('${table}') IS NOT NULL AS there`);
  return row?.there === true;
}

/**
 * Makes a replica retain, of the log that it has, exactly the part that is not archived yet. A slot that lost log is
 * created again and retains later log. Never throws: a replica follows without the slot too.
 */
export async function retainUnarchived(session: Session): Promise<void> {
  try {
    if (await hasArchiveState(session)) await retainBehindState(session);
  } catch {
    // The next observation calls it again.
  }
}

async function retainBehindState(session: Session): Promise<void> {
  const [slot] = await session.rows<{ lost: boolean }>(
    `SELECT wal_status IS NOT DISTINCT FROM 'lost' AS lost FROM pg_replication_slots WHERE slot_name = '${archiveSlot}'`,
  );
  if (slot?.lost === true) await session.rows(`SELECT pg_drop_replication_slot('${archiveSlot}')`);
  if (slot === undefined || slot.lost)
    await session.rows(`SELECT pg_create_physical_replication_slot('${archiveSlot}', true)`);
  await session.rows(
    `SELECT pg_replication_slot_advance(slot_name, archived)
     FROM pg_replication_slots, (SELECT least(position, pg_last_wal_replay_lsn()) AS archived FROM ${table}) AS archive
     WHERE slot_name = '${archiveSlot}' AND NOT active AND restart_lsn < archived`,
  );
}

import type { Instance } from "../../instance.ts";
import { platform } from "../layout.ts";
import { codeOf, type Session, withSession } from "../session.ts";

/**
 * How far the archive of the log is, as a row of the log itself: whoever is promoted with these data knows where the archive goes on,
 * and a replica keeps the log behind that. What the row says may be behind the store, never ahead.
 */
const table = `${platform}.archive`;
/** Of the archive, on each member; it is no part of a base backup and does not move with a failover. */
export const archiveSlot = `${platform}_archive`;

const statementMs = 2_000;
const undefinedTable = "42P01";

const write = `INSERT INTO ${table} (position, state) VALUES ($1, $2)
  ON CONFLICT (one) DO UPDATE SET position = excluded.position, state = excluded.state`;

export async function note(instance: Instance, position: string, state: string, signal: AbortSignal): Promise<void> {
  const work = async (session: Session) => {
    try {
      await session.rows(write, [position, state]);
    } catch (error) {
      if (codeOf(error) !== undefinedTable) throw error;
      await session.rows(
        `CREATE TABLE ${table} (one boolean PRIMARY KEY DEFAULT true CHECK (one), position pg_lsn NOT NULL, state text NOT NULL)`,
      );
      await session.rows(write, [position, state]);
    }
  };
  await withSession(instance, signal, work, { statementMs, isLocal: true });
}

/** What was noted last in the log that these data have; undefined when nothing was. */
export async function noted(instance: Instance, signal: AbortSignal): Promise<string | undefined> {
  return withSession(instance, signal, async (session) => {
    if (!(await hasNote(session))) return undefined;
    const [row] = await session.rows<{ state: string }>(`SELECT state FROM ${table}`);
    return row?.state;
  });
}

export async function hasNote(session: Session): Promise<boolean> {
  const [row] = await session.rows<{ there: boolean }>(`SELECT to_regclass('${table}') IS NOT NULL AS there`);
  return row?.there === true;
}

/**
 * Has a replica keep the log that is not archived yet, as far as it has it, and no other. A slot that could not keep it all is made
 * anew: what comes from then on is kept. Never throws: a replica without it follows all the same.
 */
export async function keepUnarchived(session: Session): Promise<void> {
  try {
    if (await hasNote(session)) await keepBehindNote(session);
  } catch {
    // It is called again with the next look.
  }
}

async function keepBehindNote(session: Session): Promise<void> {
  const [slot] = await session.rows<{ lost: boolean }>(
    `SELECT wal_status IS NOT DISTINCT FROM 'lost' AS lost FROM pg_replication_slots WHERE slot_name = '${archiveSlot}'`,
  );
  if (slot?.lost === true) await session.rows(`SELECT pg_drop_replication_slot('${archiveSlot}')`);
  if (slot === undefined || slot.lost)
    await session.rows(`SELECT pg_create_physical_replication_slot('${archiveSlot}', true)`);
  await session.rows(
    `SELECT pg_replication_slot_advance(slot_name, kept)
     FROM pg_replication_slots, (SELECT least(position, pg_last_wal_replay_lsn()) AS kept FROM ${table}) AS noted
     WHERE slot_name = '${archiveSlot}' AND NOT active AND restart_lsn < kept`,
  );
}

import type { Instance } from "../../instance.ts";
import { platform } from "../layout.ts";
import { numberOf, type Session, withSession } from "../session.ts";
import { distance, parseBranch } from "./binlog-position.ts";
import type { LogPosition } from "../../backup-facet.ts";

/**
 * Progress of the binary log's archive, in a replicated table: a promoted replica has the transactions that are
 * archived, and each member retains the files with later ones. The row may lag the store and is never ahead of it.
 * Restored data have no row: the archive of a restored service is another one.
 */
export const archiveTable = `${platform}.archive`;

const withinMs = 2_000;
/** ER_NO_SUCH_TABLE. */
const noSuchTable = 1146;

const createSql = `CREATE TABLE IF NOT EXISTS ${archiveTable}
  (id TINYINT PRIMARY KEY, position VARCHAR(64) NOT NULL, state LONGTEXT NOT NULL, gtids LONGTEXT NOT NULL)`;
const writeSql = `INSERT INTO ${archiveTable} (id, position, state, gtids) VALUES (1, ?, ?, COALESCE(?, ''))
  ON DUPLICATE KEY UPDATE position = VALUES(position), state = VALUES(state), gtids = COALESCE(?, gtids)`;

/** `gtids`: transactions that are archived; undefined leaves the recorded ones. */
export async function writeArchiveRow(
  instance: Instance,
  { position, state, gtids }: { readonly position: string; readonly state: string; readonly gtids: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  const values = [position, state, gtids ?? null, gtids ?? null];
  await withSession(
    instance,
    signal,
    async (session) => {
      try {
        await session.rows(writeSql, values);
      } catch (error) {
        if (numberOf(error) !== noSuchTable) throw error;
        await session.rows(createSql);
        await session.rows(writeSql, values);
      }
    },
    { withinMs },
  );
}

interface ArchiveRow {
  readonly position: string;
  readonly state: string;
  /** Transactions that are archived. */
  readonly gtids: string;
}

/** Undefined before the first object of an archive is stored. */
export async function readArchiveRow(session: Session): Promise<ArchiveRow | undefined> {
  try {
    const [row] = await session.rows<ArchiveRow>(`SELECT position, state, gtids FROM ${archiveTable}`);
    return row;
  } catch (error) {
    if (numberOf(error) === noSuchTable) return undefined;
    throw error;
  }
}

export function readArchiveState(instance: Instance, signal: AbortSignal): Promise<string | undefined> {
  return withSession(instance, signal, async (session) => (await readArchiveRow(session))?.state);
}

/** Transactions that are archived at this position or before; undefined if the row has a later position. */
export async function archivedBefore(session: Session, { position }: LogPosition): Promise<string | undefined> {
  const row = await readArchiveRow(session);
  return row !== undefined && distance(row.position, position) >= 0 ? row.gtids : undefined;
}

/** Position before all others: objects of another server after the saved state are archived again. */
const beginning = "0/0/0";

/** See LogFacet. The branch of this server has no end; that of any other server ends before all positions. */
export async function branchEnd(instance: Instance, branch: string, signal: AbortSignal): Promise<string | undefined> {
  const own = await withSession(instance, signal, serverId);
  return parseBranch(branch).server === own ? undefined : beginning;
}

/** Identity of the engine's data (`server_uuid`). */
export async function serverId(session: Session): Promise<string> {
  const [row] = await session.rows<{ uuid: string }>("SELECT @@GLOBAL.server_uuid AS uuid");
  return row?.uuid ?? "";
}

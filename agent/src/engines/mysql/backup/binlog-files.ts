import { numberOf, type Session } from "../session.ts";
import { type BinlogPosition, fileNumber } from "./binlog-position.ts";

/** End of the engine's log: everything before it is written in complete transactions. */
export interface BinlogEnd extends Pick<BinlogPosition, "file" | "offset"> {
  /** Transactions that are committed; all of them are before the end. */
  readonly gtids: string;
}

export async function readEnd(session: Session): Promise<BinlogEnd> {
  const [row] = await session.rows<{ File: string; Position: string; Executed_Gtid_Set: string }>(
    "SHOW BINARY LOG STATUS",
  );
  if (row === undefined) throw new Error("the engine has no binary log");
  return {
    file: fileNumber(row.File),
    offset: Number(row.Position),
    gtids: row.Executed_Gtid_Set.replaceAll(/\s/g, ""),
  };
}

/** Names of the files that exist, oldest first. */
export async function listFiles(session: Session): Promise<string[]> {
  const rows = await session.rows<{ Log_name: string }>("SHOW BINARY LOGS");
  return rows.map(({ Log_name: name }) => name);
}

/** The newest file without transactions before it that are missing in the set; undefined if there is none. */
export async function newestFileAfter(session: Session, gtids: string): Promise<string | undefined> {
  for (const name of (await listFiles(session)).toReversed()) {
    const [row] = await session.rows<{ contained: string }>("SELECT GTID_SUBSET(?, ?) AS contained", [
      await transactionsBefore(session, name),
      gtids,
    ]);
    if (Number(row?.contained) === 1) return name;
  }
  return undefined;
}

/** ER_ERROR_WHEN_EXECUTING_COMMAND: the file was removed. */
const commandFailed = 1220;

/** Transactions before a file, by the event at its beginning. */
async function transactionsBefore(session: Session, name: string): Promise<string> {
  try {
    const events = await session.rows<{ Event_type: string; Info: string }>("SHOW BINLOG EVENTS IN ? LIMIT 2", [name]);
    const found = events.find(({ Event_type: type }) => type === "Previous_gtids");
    if (found === undefined) throw new Error(`${name} does not begin with the transactions before it`);
    return found.Info.replaceAll(/\s/g, "");
  } catch (error) {
    if (numberOf(error) === commandFailed) throw new Error(`${name} was removed`, { cause: error });
    throw error;
  }
}

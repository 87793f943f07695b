import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { ArchivedLogReader, RecoveryPlan } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { eventStatesTable } from "../event-states.ts";
import { literal, messageOf } from "../session.ts";
import { archiveTable } from "./archive-state.ts";
import type { ByteSession } from "./byte-session.ts";
import type { Definitions } from "./dump-format.ts";
import { startPrivateServer } from "./private-server.ts";
import { type RelayFiles, relayFiles, relayIndex } from "./relay-files.ts";

/** Number of threads that apply transactions, as far as the source executed them concurrently. */
const appliers = 4;
/** Time limit of one wait for the applied transactions, in seconds: progress and failures are checked in between. */
const waitSeconds = 2;

/**
 * Errors of statements about objects that a copy lacks: accounts of the platform's members, and programs that were
 * broken in the source. ER_CANNOT_USER, ER_CANT_CREATE_USER_WITH_GRANT, ER_PASSWORD_NO_MATCH, ER_BAD_TABLE_ERROR,
 * ER_SP_DOES_NOT_EXIST, ER_TRG_DOES_NOT_EXIST, ER_EVENT_DOES_NOT_EXIST.
 */
const skippedErrors = [1396, 1410, 1133, 1051, 1305, 1360, 1539];

/**
 * Replays the archived log on a loaded dump, up to the target: a private server applies the files of the binary log as
 * relay logs (MySQL manual, "Point-in-Time Recovery Using the Binary Log", and "The Relay Log"). It skips transactions
 * that the dump has. Returns the time of the newest transaction. No other server may run on the data.
 */
export async function replay(
  deps: EngineDeps,
  instance: Instance,
  { gtids, log: dump, tables }: Definitions,
  { target, scratch, report, log }: RecoveryPlan & { readonly log: ArchivedLogReader },
  signal: AbortSignal,
): Promise<Date | undefined> {
  if (dump === undefined) throw new Error("the backup has no position in the log");
  const directory = join(scratch, "relay");
  // Rows that the snapshot did not include may be in the dump, and a table of MEMORY is restored without rows.
  const isTolerant = tables.some(({ isTransactional }) => isTransactional !== true);
  const options = optionsOf(directory, isTolerant);
  let reachedTime: Date | undefined;
  let isFirst = true;
  for await (const files of relayFiles(directory, dump, log, target, signal)) {
    const server = await startPrivateServer(deps, instance, signal, options);
    try {
      const session = await server.open();
      if (isFirst) await session.run(`SET GLOBAL gtid_purged = ${literal(gtids)}`);
      isFirst = false;
      await apply(session, files, (position) => report({ step: "recovering", position, reachedTime }));
      session.close();
      await server.stop();
    } catch (error) {
      const output = await server.kill();
      throw new Error(`The log could not be replayed: ${messageOf(error)} ${output.slice(-500)}`, { cause: error });
    }
    if (files.reachedMs !== undefined) reachedTime = new Date(files.reachedMs);
  }
  await rm(directory, { recursive: true, force: true });
  return reachedTime;
}

function optionsOf(directory: string, isTolerant: boolean): string[] {
  return [
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    // Events of the server's own id would be skipped.
    "--server-id=4294967295",
    `--relay-log=${join(directory, "relay")}`,
    `--relay-log-index=${relayIndex(directory)}`,
    "--relay-log-recovery=OFF",
    `--replica-parallel-workers=${appliers}`,
    "--replica-preserve-commit-order=ON",
    `--replica-exec-mode=${isTolerant ? "IDEMPOTENT" : "STRICT"}`,
    `--replica-skip-errors=${skippedErrors.join(",")}`,
    ...[archiveTable, eventStatesTable].map((table) => `--replicate-ignore-table=${table}`),
    "--innodb-strict-mode=OFF",
    // A replay that is interrupted begins again.
    "--innodb-flush-log-at-trx-commit=0",
  ];
}

/** Applies the files. `onProgress` gets the transactions in the data. */
async function apply(
  session: ByteSession,
  { first, gtids }: RelayFiles,
  onProgress: (executed: string) => void,
): Promise<void> {
  if (gtids === "") return;
  await session.run(
    `CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'archive', RELAY_LOG_FILE = ${literal(first)}, RELAY_LOG_POS = 4`,
  );
  await session.run("START REPLICA SQL_THREAD");
  for (;;) {
    const [row] = await session.rows(
      `SELECT WAIT_FOR_EXECUTED_GTID_SET(${literal(gtids)}, ${waitSeconds}) AS late, @@GLOBAL.gtid_executed AS executed`,
    );
    onProgress(String(row?.get("executed")).replaceAll(/\s/g, ""));
    if (String(row?.get("late")) === "0") break;
    const [status] = await session.rows("SHOW REPLICA STATUS");
    if (String(status?.get("Replica_SQL_Running")) !== "Yes")
      throw new Error((await workerError(session)) ?? String(status?.get("Last_SQL_Error")));
  }
  await session.run("STOP REPLICA");
  await session.run("RESET REPLICA ALL");
}

/** The error of the worker that stopped the others, of which the status of the replica has no text. */
async function workerError(session: ByteSession): Promise<string | undefined> {
  const [row] = await session.rows(
    `SELECT LAST_ERROR_MESSAGE AS message FROM performance_schema.replication_applier_status_by_worker
     WHERE LAST_ERROR_NUMBER <> 0 ORDER BY LAST_ERROR_TIMESTAMP LIMIT 1`,
  );
  return row && String(row.get("message"));
}

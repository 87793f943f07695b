import { readFile, rm } from "node:fs/promises";
import type { Examination, Finding } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { platform } from "../layout.ts";
import { identifier } from "../session.ts";
import { type ByteSession, byteText } from "./byte-session.ts";
import { startPrivateServer } from "./private-server.ts";
import { countsFile, type RestoredTable } from "./restore.ts";

/**
 * The archive commits a heartbeat at least once a minute. The probe's, every few seconds, are not in the log in the
 * synchronous modes.
 */
const heartbeatWithinMs = 65_000;

/**
 * Checks every table in a private server. Compares its number of rows with the number in the backup, or, after a replay
 * of the log, measures how close the replay came to its target.
 */
export async function examine(
  deps: EngineDeps,
  instance: Instance,
  { target, scratch }: Examination,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const tables = JSON.parse(await readFile(countsFile(instance), "utf8")) as RestoredTable[];
  const server = await startPrivateServer(deps, instance, signal);
  try {
    const session = await server.open();
    const problems: string[] = [];
    const different: string[] = [];
    for (const table of tables) {
      const problem = await problemOf(session, table);
      if (problem !== undefined) problems.push(problem);
      else if (table.rows !== undefined && (await countOf(session, table)) !== table.rows)
        different.push(`${table.database}.${table.name}`);
    }
    const heartbeat = await lastHeartbeat(session);
    session.close();
    await server.stop();
    return [
      finding("structure", problems, `CHECK TABLE found nothing wrong in ${tables.length} tables.`),
      target.kind === "time"
        ? heartbeatFinding(heartbeat, target.time)
        : finding("contents", different, `The numbers of rows in ${tables.length} tables are those of the backup.`),
    ];
  } finally {
    await server.kill();
    await rm(scratch, { recursive: true, force: true });
  }
}

async function lastHeartbeat(session: ByteSession): Promise<Date | undefined> {
  const [row] = await session.rows(`SELECT UNIX_TIMESTAMP(at) AS at FROM ${platform}.heartbeat WHERE id = 1`);
  return row === undefined ? undefined : new Date(Number(String(row.get("at"))) * 1_000);
}

function heartbeatFinding(last: Date | undefined, target: Date): Finding {
  const ageMs = last === undefined ? Number.POSITIVE_INFINITY : target.getTime() - last.getTime();
  const detail =
    last === undefined ? "There is no commit of the platform." : `The last commit is at ${last.toISOString()}.`;
  return { name: "heartbeat", passed: ageMs >= 0 && ageMs <= heartbeatWithinMs, detail };
}

function finding(name: Finding["name"], problems: readonly string[], detail: string): Finding {
  return problems.length === 0
    ? { name, passed: true, detail }
    : { name, passed: false, detail: problems.slice(0, 5).join("; ") };
}

const tableOf = ({ database, name }: RestoredTable) => `${identifier(database)}.${identifier(name)}`;

/** Problem that CHECK TABLE reports; undefined if there is none, or if the table's engine has no check. */
async function problemOf(session: ByteSession, table: RestoredTable): Promise<string | undefined> {
  const rows = await session.rows(byteText(`CHECK TABLE ${tableOf(table)}`));
  const messages = rows.map((row) => [String(row.get("Msg_type")), String(row.get("Msg_text"))] as const);
  const problem = messages.find(([type, message]) => type === "error" || (type === "status" && message !== "OK"));
  return problem === undefined ? undefined : `${table.database}.${table.name}: ${problem[1]}`;
}

async function countOf(session: ByteSession, table: RestoredTable): Promise<number> {
  const [row] = await session.rows(byteText(`SELECT COUNT(*) AS count FROM ${tableOf(table)}`));
  return Number(row?.get("count")?.toString());
}

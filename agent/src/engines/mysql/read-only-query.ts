import { statfs } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { createSemaphore } from "@holdfast/common/concurrency/semaphore.ts";
import { createRowCollector, type RowCollector } from "../console-rows.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineBusy } from "../engine-errors.ts";
import type { ReadOnlyQuery, ReadOnlyQueryFacet, ReadOnlyResult } from "../insight-facets.ts";
import { consoleValue } from "./console-value.ts";
import { type ConsoleField, type ConsoleSession, openConsoleSession } from "./console-session.ts";
import { isReservedDatabase } from "./layout.ts";
import { identifier, messageOf, numberOf, type Session, withSession } from "./session.ts";

const maxConcurrent = 4;
/** Limits the statements of this agent, which runs a single engine. */
const semaphore = createSemaphore(maxConcurrent, {
  waitingMax: 0,
  refusal: () => new EngineBusy(`${maxConcurrent} console queries are running already.`),
});

/** ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS and ER_USER_LIMIT_REACHED. */
const noSession = [1040, 1203, 1226];
/** Share of free disk space below which a statement with temporary files is terminated. */
const minFreeShare = 0.1;
/** Memory of a statement, as a share of the machine's, and its bounds. */
const memoryShare = 1 / 8;
const [minMemoryBytes, maxMemoryBytes] = [64 << 20, 1 << 30];
const checkIntervalMs = 100;

/**
 * Runs one checked statement of the query console, as an account that only selects, in a read-only transaction of a new
 * session. Views that call routines of users are refused: a routine runs with the privileges of its author.
 */
export const readOnlyQuery: ReadOnlyQueryFacet = {
  async run(instance, query, signal) {
    if (isReservedDatabase(query.database)) return unknownDatabase(query.database);
    try {
      return await semaphore.run(() => runChecked(instance, query, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (noSession.includes(numberOf(error))) throw new EngineBusy(messageOf(error), { cause: error });
      if (numberOf(error) === 0) throw error;
      // The console's account has privileges in every database of users, so it is denied only an unknown one.
      return isDatabaseDenied(error, query.database) ? unknownDatabase(query.database) : refusal(messageOf(error));
    }
  },
};

const refusal = (message: string): ReadOnlyResult => ({ refusal: { message, position: 0, name: "" } });
const unknownDatabase = (name: string) => refusal(`Unknown database '${name}'`);

/** ER_DBACCESS_DENIED_ERROR of the database that the session uses. */
function isDatabaseDenied(error: unknown, database: string): boolean {
  return numberOf(error) === 1044 && messageOf(error).endsWith(`to database '${database}'`);
}

async function runChecked(instance: Instance, query: ReadOnlyQuery, signal: AbortSignal): Promise<ReadOnlyResult> {
  // A limit later than the engine's, which does not apply to SHOW.
  const late = AbortSignal.timeout(query.timeoutMs + 2_000);
  const bounded = AbortSignal.any([signal, late]);
  const opened = await withSession(instance, bounded, async (own) => {
    const view = await callingView(own, query);
    if (view !== undefined) return refusal(`The view ${view} calls a routine of users.`);
    return openConsoleSession(instance, query.database, own, bounded);
  });
  return "run" in opened ? runIn(opened, instance, query, late) : opened;
}

async function runIn(
  session: ConsoleSession,
  instance: Instance,
  query: ReadOnlyQuery,
  late: AbortSignal,
): Promise<ReadOnlyResult> {
  const ended = new AbortController();
  let excess: string | undefined;
  const supervision = supervise(instance, session, query.timeoutMs, ended.signal, (reason) => {
    excess = reason;
  });
  try {
    await session.run(settingsSql(query.timeoutMs));
    await session.run("START TRANSACTION READ ONLY");
    const startedMs = performance.now();
    const rows = await collectRows(session, query);
    if (rows.isFull && rows.rowCount === 0) return refusal("A row of the result is too large.");
    return { ...rows.result(), executionMs: Math.round(performance.now() - startedMs) };
  } catch (error) {
    if (late.aborted) excess ??= tooSlow(query.timeoutMs);
    if (excess !== undefined) return refusal(excess);
    throw error;
  } finally {
    ended.abort();
    session.close();
    await supervision;
  }
}

const tooSlow = (ms: number) => `The statement ran for ${ms} ms and was ended.`;

/** Reads rows up to the limits. The caller closes the session, so that the engine sends no more. */
async function collectRows(session: ConsoleSession, query: ReadOnlyQuery): Promise<RowCollector> {
  let fields: readonly ConsoleField[] = [];
  const rows = createRowCollector(query);
  const onFields = (found: readonly ConsoleField[]) => {
    fields = found;
    rows.setColumns(found.map(({ name }) => name));
  };
  for await (const row of session.rows(query.sql, onFields)) {
    rows.take(row.map((value, index) => consoleValue(fields[index], value)));
    if (rows.isFull) break;
  }
  return rows;
}

function settingsSql(timeoutMs: number): string {
  const values: Readonly<Record<string, string | number>> = {
    // The controller parsed the statement in this mode.
    sql_mode:
      "'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
    time_zone: "'+00:00'",
    completion_type: "'NO_CHAIN'",
    transaction_isolation: "'REPEATABLE-READ'",
    max_execution_time: timeoutMs,
    lock_wait_timeout: 5,
    innodb_lock_wait_timeout: 5,
    group_concat_max_len: 1_048_576,
    cte_max_recursion_depth: 1_000_000,
  };
  return `SET ${Object.entries(values)
    .map(([name, value]) => `SESSION ${name} = ${value}`)
    .join(", ")}`;
}

/**
 * Ends the session of a statement that runs too long, needs too much memory, or fills the disk with temporary files.
 * Resolves then or on the signal.
 */
async function supervise(
  instance: Instance,
  { id, close }: ConsoleSession,
  timeoutMs: number,
  signal: AbortSignal,
  onExcess: (reason: string) => void,
): Promise<void> {
  const startedMs = performance.now();
  const memoryBytes = Math.min(
    Math.max(Number(instance.spec.memoryBytes) * memoryShare, minMemoryBytes),
    maxMemoryBytes,
  );
  const memorySql = `SELECT total_memory AS bytes FROM performance_schema.threads WHERE processlist_id = ${id}`;

  async function excess(session: Session): Promise<string | undefined> {
    if (performance.now() - startedMs > timeoutMs) return tooSlow(timeoutMs);
    const { bavail, blocks } = await statfs(instance.paths.data);
    if (bavail < blocks * minFreeShare)
      return "The disk of the service is too full for the temporary files of the statement.";
    const [row] = await session.rows<{ bytes: string }>(memorySql);
    if (Number(row?.bytes ?? 0) <= memoryBytes) return undefined;
    return `The statement needs more memory than the ${memoryBytes >> 20} MiB that a console statement may use.`;
  }

  try {
    await sleep(checkIntervalMs, undefined, { signal });
    await withSession(instance, signal, async (session) => {
      for (;;) {
        const reason = await excess(session);
        if (reason !== undefined) {
          onExcess(reason);
          await session.rows(`KILL ${id}`).catch(() => undefined);
          // Without the connection the engine ends the statement, possibly later.
          return close();
        }
        await sleep(checkIntervalMs, undefined, { signal });
      }
    });
  } catch {
    // The statement has ended, or no session of the platform is free and the statement's own time limit remains.
  }
}

const maxDepth = 20;

/** First view among the statement's names that calls a stored routine, directly or through other views. */
async function callingView(session: Session, { relations, database }: ReadOnlyQuery): Promise<string | undefined> {
  if (relations.length === 0) return undefined;
  const rows = await session.rows<{ place: string; name: string }>(
    `WITH RECURSIVE calling (place, name, depth) AS (
       SELECT table_schema, table_name, 1 FROM information_schema.view_routine_usage
       UNION
       SELECT u.view_schema, u.view_name, depth + 1 FROM information_schema.view_table_usage u
         JOIN calling ON u.table_schema = calling.place AND u.table_name = calling.name WHERE depth < ${maxDepth})
     SELECT DISTINCT place, name FROM calling`,
  );
  const named = new Set(relations.map((relation) => relation.toLowerCase()));
  const found = rows.find(({ place, name }) => {
    const [schema, view] = [identifier(place).toLowerCase(), identifier(name).toLowerCase()];
    return named.has(`${schema}.${view}`) || (named.has(view) && place === database);
  });
  return found && `${found.place}.${found.name}`;
}

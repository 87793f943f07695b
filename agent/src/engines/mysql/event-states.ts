import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../engine-driver.ts";
import { platform } from "./layout.ts";
import { accountChanges } from "./platform-accounts.ts";
import { identifier, literal, numberOf, type Session, withSession } from "./session.ts";

/**
 * States of users' scheduled events on the primary, in a replicated table: a replica receives every event as
 * REPLICA_SIDE_DISABLED, from which the state on the primary is unknown. The table has the events that are not enabled,
 * and a row without a name, whose state is the server that recorded them. Without that row nothing is known.
 */
export const eventStatesTable = `${platform}.event_states`;

/** Events that are recorded, the first by name. A replica enables the others at its promotion. */
const eventsMax = 10_000;

const createSql = `CREATE TABLE IF NOT EXISTS ${eventStatesTable}
  (place VARCHAR(64) NOT NULL, name VARCHAR(64) NOT NULL, state VARCHAR(64) NOT NULL, PRIMARY KEY (place, name))`;
/** ER_NO_SUCH_TABLE. */
const noSuchTable = 1146;

interface Row {
  readonly place: string;
  readonly name: string;
  readonly state: string;
}

interface EventRow extends Row {
  readonly definer: string;
  /** True for an event that another member created or changed last. */
  readonly received: number;
  readonly sql_mode: string;
  readonly time_zone: string;
  readonly character_set_client: string;
  readonly collation_connection: string;
}

interface Recorded {
  readonly server: string;
  /** Recorded events by `keyOf`. */
  readonly rows: ReadonlyMap<string, Row>;
}

const keyOf = ({ place, name }: Pick<Row, "place" | "name">) => `${identifier(place)}.${identifier(name)}`;
const isReplicaSide = ({ state }: Row) => state.endsWith("SIDE_DISABLED");

async function readEvents(session: Session): Promise<EventRow[]> {
  return session.rows<EventRow>(
    `SELECT event_schema AS place, event_name AS name, status AS state, originator <> @@GLOBAL.server_id AS received,
       definer AS definer, sql_mode AS sql_mode, time_zone AS time_zone,
       character_set_client AS character_set_client, collation_connection AS collation_connection
     FROM information_schema.events ORDER BY 1, 2`,
  );
}

/** Undefined before a primary recorded something. */
async function readRecorded(session: Session): Promise<Recorded | undefined> {
  try {
    const rows = await session.rows<Row>(`SELECT place, name, state FROM ${eventStatesTable}`);
    const server = rows.find(({ name }) => name === "")?.state;
    if (server === undefined) return undefined;
    const named = rows.filter(({ name }) => name !== "");
    return { server, rows: new Map(named.map((row) => [keyOf(row), row])) };
  } catch (error) {
    if (numberOf(error) === noSuchTable) return undefined;
    throw error;
  }
}

async function serverOf(session: Session): Promise<string> {
  const [row] = await session.rows<{ uuid: string }>("SELECT @@GLOBAL.server_uuid AS uuid");
  return row?.uuid ?? "";
}

/** The state that a promoted member gives an event; undefined if it retains its own. */
function settledState(event: EventRow, { rows }: Recorded, hasOldStates: boolean): "ENABLE" | "DISABLE" | undefined {
  const recorded = rows.get(keyOf(event));
  if (isReplicaSide(event)) {
    if (Number(event.received) === 0 || (recorded !== undefined && isReplicaSide(recorded))) return undefined;
    return recorded === undefined ? "ENABLE" : "DISABLE";
  }
  // The end of an event that is preserved is not replicated: a copy of the data would run it again.
  return hasOldStates && event.state === "ENABLED" && recorded?.state === "DISABLED" ? "DISABLE" : undefined;
}

/**
 * Gives events that this member received the states that they had on the primary before. The session's changes are not
 * replicated (`isLocal`). `isPromotion`: users could not change an event here yet. Returns the events that retain the
 * state of a replica because of a failure.
 */
export async function settleEvents(
  session: Session,
  { isPromotion }: { readonly isPromotion: boolean },
): Promise<ReadonlySet<string>> {
  const recorded = await readRecorded(session);
  if (recorded === undefined) return new Set();
  const hasOldStates = isPromotion && recorded.server !== (await serverOf(session));
  const failed = new Set<string>();
  for (const event of await readEvents(session)) {
    const state = settledState(event, recorded, hasOldStates);
    if (state === undefined) continue;
    try {
      await alterEvent(session, event, state);
    } catch (error) {
      if (numberOf(error) === 0) throw error;
      failed.add(keyOf(event));
    }
  }
  return failed;
}

/** Changes the state of an event, which retains its author and settings. */
async function alterEvent(session: Session, event: EventRow, state: string): Promise<void> {
  const { definer, sql_mode, time_zone, character_set_client, collation_connection } = event;
  const settings = { sql_mode, time_zone, character_set_client, collation_connection };
  const list = (values: Readonly<Record<string, string>>) =>
    Object.entries(values)
      .map(([name, value]) => `SESSION ${name} = ${literal(value)}`)
      .join(", ");
  const at = definer.lastIndexOf("@");
  const author = `${identifier(definer.slice(0, at))}@${identifier(definer.slice(at + 1))}`;
  const [before] = await session.rows<Record<string, string>>(
    `SELECT ${Object.keys(settings)
      .map((name) => `@@SESSION.${name} AS ${name}`)
      .join(", ")}`,
  );
  try {
    await session.rows(`SET ${list(settings)}`);
    await session.rows(`ALTER DEFINER = ${author} EVENT ${keyOf(event)} ${state}`);
  } finally {
    await session.rows(`SET ${list(before ?? {})}`);
  }
}

/** Records the current states on a primary, in one transaction of the differences. `except` remain as recorded. */
export async function recordEvents(session: Session, except: ReadonlySet<string> = new Set()): Promise<void> {
  const before = await readRecorded(session);
  const own = await serverOf(session);
  const disabled = (await readEvents(session)).filter(({ state }) => state !== "ENABLED").slice(0, eventsMax);
  const current = new Set(disabled.map(keyOf));
  const stale = [...(before?.rows.values() ?? [])].filter((row) => !current.has(keyOf(row)));
  const changed = disabled.filter(
    (event) => !except.has(keyOf(event)) && before?.rows.get(keyOf(event))?.state !== event.state,
  );
  if (before?.server === own && stale.length === 0 && changed.length === 0) return;
  if (before === undefined) await session.rows(createSql);
  const rows: Row[] = [...changed, { place: "", name: "", state: own }];
  await session.rows("START TRANSACTION");
  for (const { place, name } of stale)
    await session.rows(`DELETE FROM ${eventStatesTable} WHERE place = ? AND name = ?`, [place, name]);
  await session.rows(`REPLACE INTO ${eventStatesTable} (place, name, state) VALUES ?`, [
    rows.map(({ place, name, state }) => [place, name, state]),
  ]);
  await session.rows("COMMIT");
}

export interface EventStates {
  /**
   * Completes the states after a promotion, and records those of the primary. Resolves when both are done, or after
   * 300 ms while they continue.
   */
  record(instance: Instance): Promise<void>;
}

const waitMs = 300;
const recordTimeoutMs = 5_000;

/** Records one change at a time, in separate sessions: a commit may wait for a synchronous replica. */
export function createEventStates(): EventStates {
  let running: Promise<void> | undefined;
  return {
    async record(instance) {
      if (instance.spec.replication === undefined) return;
      // A promotion, which does the same, is one of these changes too.
      running ??= accountChanges(instance.paths.data, () => settleAndRecord(instance))
        .catch(() => undefined)
        .finally(() => {
          running = undefined;
        });
      await Promise.race([running, sleep(waitMs, undefined, { ref: false })]);
    },
  };
}

async function settleAndRecord(instance: Instance): Promise<void> {
  const signal = AbortSignal.timeout(recordTimeoutMs);
  const options = { withinMs: recordTimeoutMs };
  const failed = await withSession(
    instance,
    signal,
    async (session) => {
      const [row] = await session.rows<{ refused: string }>("SELECT @@GLOBAL.read_only AS refused");
      // A promotion is not complete, or the disk is almost full.
      return Number(row?.refused) === 1 ? undefined : settleEvents(session, { isPromotion: false });
    },
    { ...options, isLocal: true },
  );
  if (failed !== undefined) await withSession(instance, signal, (session) => recordEvents(session, failed), options);
}

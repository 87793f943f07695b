import type { Session } from "../session.ts";
import { refusing } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";

/** A message with the worker id of its claim. */
export interface Held {
  readonly id: bigint;
  readonly worker: string;
}

/** In the order of the request: what was the worker's, and what was not, or no longer. */
export interface Settled<H extends Held> {
  readonly done: H[];
  readonly lost: H[];
}

/** A message that is named twice counts once as done, by the first. */
export async function ack<H extends Held>(session: Session, queue: string, held: readonly H[]): Promise<Settled<H>> {
  return settle(session, held, `DELETE FROM ${schema}.messages m USING asked a WHERE ${isHeld} RETURNING a.place`, [
    queue,
    ...columnsOf(held),
  ]);
}

export interface Nack extends Held {
  /** 0 to 43200 until it is ready again. */
  readonly delaySeconds: number;
  /** Cut at 4 KiB. */
  readonly error?: string | undefined;
  /** True when it is not to be tried again: the next sweep buries it. */
  readonly discard?: boolean | undefined;
}

export async function nack<H extends Nack>(session: Session, queue: string, held: readonly H[]): Promise<Settled<H>> {
  return settle(
    session,
    held,
    `UPDATE ${schema}.messages m SET visible_at = clock_timestamp() + make_interval(secs => a.delay), claimed_by = NULL,
       last_error = ${schema}.cut_error(a.error),
       max_attempts = CASE WHEN a.discard THEN least(m.max_attempts, greatest(m.attempt_count, 1)) ELSE m.max_attempts END
     FROM asked a WHERE ${isHeld} RETURNING a.place`,
    [
      queue,
      ...columnsOf(held),
      held.map(({ delaySeconds }) => delaySeconds),
      held.map(({ error }) => error ?? null),
      held.map(({ discard }) => discard === true),
    ],
  );
}

export interface Extend extends Held {
  /** 0 to 43200 from now on. */
  readonly visibilitySeconds: number;
}

export async function extend<H extends Extend>(
  session: Session,
  queue: string,
  held: readonly H[],
): Promise<Settled<H>> {
  return settle(
    session,
    held,
    `UPDATE ${schema}.messages m SET visible_at = clock_timestamp() + make_interval(secs => a.delay)
     FROM asked a WHERE ${isHeld} RETURNING a.place`,
    [queue, ...columnsOf(held), held.map(({ visibilitySeconds }) => visibilitySeconds)],
  );
}

/** The array beside the join: statistics of an empty queue would make the planner read all messages first. */
const isHeld = "m.id = ANY ($2::bigint[]) AND m.id = a.id AND m.claimed_by = a.worker AND m.queue_name = $1";

const columnsOf = (held: readonly Held[]) => [held.map(({ id }) => String(id)), held.map(({ worker }) => worker)];

/** Names of the arrays from $2 on, and their types. */
const arrays = [
  ["id", "bigint"],
  ["worker", "text"],
  ["delay", "double precision"],
  ["error", "text"],
  ["discard", "boolean"],
] as const;

/** Runs the statement with the arrays as rows of "asked", each message once. */
function settle<H extends Held>(
  session: Session,
  held: readonly H[],
  statement: string,
  values: readonly unknown[],
): Promise<Settled<H>> {
  const given = arrays.slice(0, values.length - 1);
  const unnest = given.map(([, type], index) => `$${index + 2}::${type}[]`).join(", ");
  return refusing(async () => {
    const rows = await session.rows<{ place: string }>(
      `WITH asked AS MATERIALIZED (SELECT DISTINCT ON (id, worker) * FROM unnest(${unnest})
         WITH ORDINALITY AS u (${given.map(([name]) => name).join(", ")}, place) ORDER BY id, worker, place),
       changed AS (${statement}) SELECT place FROM changed`,
      values,
    );
    const places = new Set(rows.map(({ place }) => Number(place) - 1));
    return {
      done: held.filter((_, index) => places.has(index)),
      lost: held.filter((_, index) => !places.has(index)),
    };
  });
}

import type { Session } from "../session.ts";
import { mapRefusals } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";

/** A message with the worker id of its claim. */
export interface MessageClaim {
  readonly id: bigint;
  readonly worker: string;
}

/**
 * Messages of a request, in its order: `done` belonged to the worker; `lost` did not, or no longer.
 */
export interface Settled<H extends MessageClaim> {
  readonly done: H[];
  readonly lost: H[];
}

/** A message that is named twice counts as done once, by its first entry. */
export async function ack<H extends MessageClaim>(
  session: Session,
  queue: string,
  claims: readonly H[],
): Promise<Settled<H>> {
  return settle(
    session,
    claims,
    `DELETE FROM ${schema}.messages m USING named a WHERE ${isClaimed} RETURNING a.ordinal`,
    [queue, ...columnsOf(claims)],
  );
}

export interface Nack extends MessageClaim {
  /** Delay in seconds until it is ready again, 0 to 43200. */
  readonly delaySeconds: number;
  /** Truncated to 4 KiB. */
  readonly error?: string | undefined;
  /** True if it is not to be retried: the next sweep moves it to the dead messages. */
  readonly discard?: boolean | undefined;
}

export async function nack<H extends Nack>(session: Session, queue: string, claims: readonly H[]): Promise<Settled<H>> {
  return settle(
    session,
    claims,
    `UPDATE ${schema}.messages m SET visible_at = clock_timestamp() + make_interval(secs => a.delay), claimed_by = NULL,
       last_error = ${schema}.cut_error(a.error),
       max_attempts = CASE WHEN a.discard THEN least(m.max_attempts, greatest(m.attempt_count, 1)) ELSE m.max_attempts END
     FROM named a WHERE ${isClaimed} RETURNING a.ordinal`,
    [
      queue,
      ...columnsOf(claims),
      claims.map(({ delaySeconds }) => delaySeconds),
      claims.map(({ error }) => error ?? null),
      claims.map(({ discard }) => discard === true),
    ],
  );
}

export interface Extend extends MessageClaim {
  /** New visibility timeout in seconds from now, 0 to 43200. */
  readonly visibilitySeconds: number;
}

export async function extend<H extends Extend>(
  session: Session,
  queue: string,
  claims: readonly H[],
): Promise<Settled<H>> {
  return settle(
    session,
    claims,
    `UPDATE ${schema}.messages m SET visible_at = clock_timestamp() + make_interval(secs => a.delay)
     FROM named a WHERE ${isClaimed} RETURNING a.ordinal`,
    [queue, ...columnsOf(claims), claims.map(({ visibilitySeconds }) => visibilitySeconds)],
  );
}

/** The array in addition to the join: with statistics of an empty queue the planner would read all messages first. */
const isClaimed = "m.id = ANY ($2::bigint[]) AND m.id = a.id AND m.claimed_by = a.worker AND m.queue_name = $1";

const columnsOf = (claims: readonly MessageClaim[]) => [
  claims.map(({ id }) => String(id)),
  claims.map(({ worker }) => worker),
];

/** Names and types of the array parameters from $2 on. */
const arrays = [
  ["id", "bigint"],
  ["worker", "text"],
  ["delay", "double precision"],
  ["error", "text"],
  ["discard", "boolean"],
] as const;

/** Runs the statement with the arrays as rows of a CTE, each message once. */
function settle<H extends MessageClaim>(
  session: Session,
  claims: readonly H[],
  statement: string,
  values: readonly unknown[],
): Promise<Settled<H>> {
  const parameters = arrays.slice(0, values.length - 1);
  const unnest = parameters.map(([, type], index) => `$${index + 2}::${type}[]`).join(", ");
  return mapRefusals(async () => {
    const rows = await session.rows<{ ordinal: string }>(
      `WITH named AS MATERIALIZED (SELECT DISTINCT ON (id, worker) * FROM unnest(${unnest})
         WITH ORDINALITY AS u (${parameters.map(([name]) => name).join(", ")}, ordinal) ORDER BY id, worker, ordinal),
       changed AS (${statement}) SELECT ordinal FROM changed`,
      values,
    );
    const ordinals = new Set(rows.map(({ ordinal }) => Number(ordinal) - 1));
    return {
      done: claims.filter((_, index) => ordinals.has(index)),
      lost: claims.filter((_, index) => !ordinals.has(index)),
    };
  });
}

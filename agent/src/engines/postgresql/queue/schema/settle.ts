import { planSettings, type SqlFunction } from "./function.ts";
import { refusals, schema } from "./names.ts";

const resultColumns = "TABLE (id bigint, done boolean)";

/**
 * Result of a change in a CTE `changed`: each id once, in order, with `done` false where the message was not the
 * worker's.
 */
const resultQuery = `SELECT i.id, EXISTS (SELECT FROM changed c WHERE c.id = i.id)
    FROM (SELECT DISTINCT u.id FROM unnest(ids) AS u (id)) AS i ORDER BY i.id`;

const checkDelay = `IF delay_seconds IS NULL OR delay_seconds NOT BETWEEN 0 AND 43200 THEN
    RAISE EXCEPTION 'delay_seconds is 0 to 43200' USING ERRCODE = '${refusals.outOfRange}';
  END IF;`;

/** Rule 3: deletes messages that were processed. */
export const ack: SqlFunction = {
  name: "ack",
  parameters: "queue text, worker text, ids bigint[]",
  returns: resultColumns,
  settings: planSettings,
  body: `BEGIN
  RETURN QUERY WITH changed AS (
    DELETE FROM ${schema}.messages m
      WHERE m.id = ANY (ids) AND m.queue_name = queue AND m.claimed_by = worker RETURNING m.id
  ) ${resultQuery};
END`,
};

/**
 * Rule 4: returns messages to the queue; no worker gets them until their delay has passed. With `discard` no attempt
 * remains, and the next sweep after the delay moves them to dead_messages.
 */
export const nack: SqlFunction = {
  name: "nack",
  parameters: `queue text, worker text, ids bigint[], delay_seconds double precision DEFAULT 0, error text DEFAULT NULL,
    discard boolean DEFAULT false`,
  returns: resultColumns,
  settings: planSettings,
  body: `BEGIN
  ${checkDelay}
  RETURN QUERY WITH changed AS (
    UPDATE ${schema}.messages m SET visible_at = clock_timestamp() + make_interval(secs => delay_seconds), claimed_by = NULL,
        last_error = ${schema}.cut_error(error),
        max_attempts = CASE WHEN discard THEN least(m.max_attempts, greatest(m.attempt_count, 1)) ELSE m.max_attempts END
      WHERE m.id = ANY (ids) AND m.queue_name = queue AND m.claimed_by = worker RETURNING m.id
  ) ${resultQuery};
END`,
};

/** Rule 5: extends the visibility timeout to `delay_seconds` from now. */
export const extend: SqlFunction = {
  name: "extend",
  parameters: "queue text, worker text, ids bigint[], delay_seconds double precision",
  returns: resultColumns,
  settings: planSettings,
  body: `BEGIN
  ${checkDelay}
  RETURN QUERY WITH changed AS (
    UPDATE ${schema}.messages m SET visible_at = clock_timestamp() + make_interval(secs => delay_seconds)
      WHERE m.id = ANY (ids) AND m.queue_name = queue AND m.claimed_by = worker RETURNING m.id
  ) ${resultQuery};
END`,
};

/** Function that returns the first 4 KiB of a string, cut between characters. */
export const truncateError: SqlFunction = {
  name: "cut_error",
  parameters: "error text",
  returns: "text",
  body: `DECLARE
  short text := left(error, 4096);
BEGIN
  WHILE octet_length(short) > 4096 LOOP
    short := left(short, -greatest((octet_length(short) - 4096) / 4, 1));
  END LOOP;
  RETURN short;
END`,
};

import type { SqlFunction } from "./function.ts";
import { refusals, schema } from "./names.ts";

const lookupQueue = `
  IF delay_seconds IS NULL OR delay_seconds < 0 OR delay_seconds > 43200 THEN
    RAISE EXCEPTION 'delay_seconds is 0 to 43200' USING ERRCODE = '${refusals.outOfRange}';
  END IF;
  SELECT q.max_attempts INTO attempts FROM ${schema}.queues q WHERE q.name = queue AND q.deleted_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'queue % is not active', queue USING ERRCODE = '${refusals.queueNotActive}';
  END IF;`;

/** Enqueues one message and returns its id. */
export const enqueue: SqlFunction = {
  name: "enqueue",
  parameters: "queue text, payload jsonb, delay_seconds double precision DEFAULT 0",
  returns: "bigint",
  body: `DECLARE
  attempts integer;
  at timestamptz := clock_timestamp();
  made bigint;
BEGIN${lookupQueue}
  INSERT INTO ${schema}.messages (queue_name, payload, max_attempts, visible_at, enqueued_at)
    VALUES (queue, enqueue.payload, attempts, at + make_interval(secs => delay_seconds), at)
    RETURNING id INTO made;
  RETURN made;
END`,
};

/** Enqueues messages and returns their ids in the order of the payloads. */
export const enqueueMany: SqlFunction = {
  name: "enqueue_many",
  parameters: "queue text, payloads jsonb[], delay_seconds double precision DEFAULT 0",
  returns: "SETOF bigint",
  body: `DECLARE
  attempts integer;
  at timestamptz := clock_timestamp();
BEGIN${lookupQueue}
  RETURN QUERY INSERT INTO ${schema}.messages AS m (queue_name, payload, max_attempts, visible_at, enqueued_at)
    SELECT queue, p.payload, attempts, at + make_interval(secs => delay_seconds), at
      FROM unnest(payloads) WITH ORDINALITY AS p (payload, place) ORDER BY p.place
    RETURNING m.id;
END`,
};

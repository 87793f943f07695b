import { maxPayloadBytes, refusals, schema } from "./names.ts";

/**
 * Rejects inserts for names without a queue. A foreign key would lock the queue's row for each of them. A transaction
 * with a fixed snapshot may still see a deleted queue, which the xmax of the visible row reveals.
 */
const checkQueues = `CREATE FUNCTION ${schema}.check_queues() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  missing text;
BEGIN
  SELECT f.queue_name INTO missing FROM (SELECT DISTINCT i.queue_name FROM inserted i) f
    WHERE NOT EXISTS (SELECT FROM ${schema}.queues q WHERE q.name = f.queue_name AND q.deleted_at IS NULL) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'queue % is not active', missing USING ERRCODE = '${refusals.queueNotActive}';
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' AND EXISTS (
    SELECT FROM ${schema}.queues q JOIN (SELECT DISTINCT i.queue_name FROM inserted i) f ON q.name = f.queue_name
      WHERE q.xmax <> '0'::xid AND pg_xact_status(${fullXid("q.xmax")}) <> 'aborted'
  ) THEN
    RAISE EXCEPTION 'could not serialize access: the queue has been changed' USING ERRCODE = '40001';
  END IF;
  RETURN NULL;
END
$body$`;

/** Extends a 32-bit xid by the current epoch; a visible row is never older than half an epoch. */
function fullXid(xid: string): string {
  return `(pg_current_xact_id()::text::bigint - age(${xid})::bigint)::text::xid8`;
}

const checkQueuesTrigger = `CREATE TRIGGER check_queues AFTER INSERT ON ${schema}.messages
  REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.check_queues()`;

/** Checks a message that an update moves to another queue. */
const checkMove = `CREATE FUNCTION ${schema}.check_move() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
  IF NOT EXISTS (SELECT FROM ${schema}.queues q WHERE q.name = NEW.queue_name AND q.deleted_at IS NULL) THEN
    RAISE EXCEPTION 'queue % is not active', NEW.queue_name USING ERRCODE = '${refusals.queueNotActive}';
  END IF;
  RETURN NEW;
END
$body$`;

const checkMoveTrigger = `CREATE TRIGGER check_move BEFORE UPDATE OF queue_name ON ${schema}.messages
  FOR EACH ROW WHEN (NEW.queue_name <> OLD.queue_name) EXECUTE FUNCTION ${schema}.check_move()`;

/** Sets max_attempts to the queue's if an insert omits it. */
const fillAttempts = `CREATE FUNCTION ${schema}.fill_attempts() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
  SELECT q.max_attempts INTO NEW.max_attempts FROM ${schema}.queues q
    WHERE q.name = NEW.queue_name AND q.deleted_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'queue % is not active', NEW.queue_name USING ERRCODE = '${refusals.queueNotActive}';
  END IF;
  RETURN NEW;
END
$body$`;

const fillAttemptsTrigger = `CREATE TRIGGER fill_attempts BEFORE INSERT ON ${schema}.messages
  FOR EACH ROW WHEN (NEW.max_attempts IS NULL) EXECUTE FUNCTION ${schema}.fill_attempts()`;

/**
 * Called only if the printed payload exceeds the limit or is not an object. jsonb prints a space after each comma and
 * colon, and none elsewhere outside of strings, so the compact form has at least two thirds of the printed bytes.
 */
const checkPayload = `CREATE FUNCTION ${schema}.check_payload() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  printed text := NEW.payload::text;
  bytes integer := octet_length(printed);
BEGIN
  IF jsonb_typeof(NEW.payload) <> 'object' THEN
    RAISE EXCEPTION 'payload is no JSON object' USING ERRCODE = '${refusals.payloadNotObject}';
  END IF;
  IF bytes <= ${maxPayloadBytes * 1.5} THEN
    printed := regexp_replace(printed, '"([^"\\\\]|\\\\.)*"', '', 'g');
    bytes := bytes - (length(printed) - length(replace(printed, ' ', '')));
  END IF;
  IF bytes > ${maxPayloadBytes} THEN
    RAISE EXCEPTION 'payload has over ${maxPayloadBytes} bytes' USING ERRCODE = '${refusals.payloadTooLarge}';
  END IF;
  RETURN NEW;
END
$body$`;

const checkPayloadTrigger = `CREATE TRIGGER check_payload BEFORE INSERT OR UPDATE OF payload ON ${schema}.messages
  FOR EACH ROW WHEN (jsonb_typeof(NEW.payload) <> 'object' OR octet_length(NEW.payload::text) > ${maxPayloadBytes})
  EXECUTE FUNCTION ${schema}.check_payload()`;

export const triggers: readonly string[] = [
  checkQueues,
  checkQueuesTrigger,
  checkMove,
  checkMoveTrigger,
  fillAttempts,
  fillAttemptsTrigger,
  checkPayload,
  checkPayloadTrigger,
];

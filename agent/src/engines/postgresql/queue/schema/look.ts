import { ownPlans, type SqlFunction } from "./function.ts";
import { schema } from "./names.ts";
import { inOrderAfter, orderOf, slices } from "./slices.ts";

/** A look that passes so many index entries more than it may hand out is dear. */
const dearEntries = 1000;

/** Statements that take longer to commit are found by the next look at everything. */
const stillCommitting = "interval '100 ms'";

/** Name of the setting in which a session remembers where its claims of a queue begin. */
const setting = "'mdb_queue.look_' || to_hex(hashtextextended(queue, 0))";

/** Index entries of messages that this session has read; a difference within one transaction is exact. */
const entriesRead = ["messages_fresh", "messages_due", "messages_last"]
  .map((index) => `coalesce(pg_stat_get_xact_tuples_returned('${schema}.${index}'::regclass), 0)`)
  .join(" + ");

const microseconds = (time: string) => `(extract(epoch FROM ${time}) * 1000000)::bigint`;
const timeOf = (text: string) => `to_timestamp(${text}::double precision / 1000000)`;

/**
 * Where a claim of this session begins: at the first message that the last one left, or at the beginning. `whole_at` is when
 * everything is looked at again, null while that is cheap; whoever sets the setting by hand hides messages for a minute at most.
 */
export const beginLook: SqlFunction = {
  name: "begin_look",
  parameters: "queue text",
  returns: `TABLE (after_id bigint, due_after timestamptz, whole_at timestamptz, begun timestamptz, entries bigint,
    last_id bigint)`,
  body: `DECLARE
  known text := current_setting(${setting}, true);
  parts text[];
BEGIN
  begun := clock_timestamp();
  entries := ${entriesRead};
  -- Before anything is looked at: what gets a larger id is never skipped.
  last_id := coalesce(pg_sequence_last_value('${schema}.messages_id_seq'), 0);
  after_id := 0;
  due_after := '-infinity';
  IF known ~ '^[0-9]{1,18} [0-9]{1,16} [0-9]{1,16}$' THEN
    parts := string_to_array(known, ' ');
    whole_at := ${timeOf("parts[3]")};
    IF whole_at > begun AND whole_at < begun + interval '61 s' THEN
      after_id := parts[1]::bigint;
      due_after := ${timeOf("parts[2]")};
    END IF;
  END IF;
  RETURN NEXT;
END`,
};

/**
 * Remembers where the session's next claim of the queue begins, when a look at everything has passed many entries of rows that
 * an old snapshot keeps. Everything is looked at again each second, or less often so that it takes a twentieth of the time.
 */
export const endLook: SqlFunction = {
  name: "end_look",
  parameters: `queue text, most integer, begun timestamptz, entries bigint, whole_at timestamptz, last_id bigint,
    after_id bigint, due_after timestamptz`,
  returns: "void",
  settings: ownPlans,
  body: `DECLARE
  now timestamptz := clock_timestamp();
  due_at timestamptz;
  next_id bigint;
BEGIN
  IF after_id = 0 THEN
    IF ${entriesRead} - entries <= ${dearEntries} + 3 * most THEN
      IF whole_at IS NOT NULL THEN
        PERFORM set_config(${setting}, '', false);
      END IF;
      RETURN;
    END IF;
    whole_at := now + least(greatest(20 * (now - begun), interval '1 s'), interval '1 min');
  END IF;
  SELECT least(
    (SELECT m.visible_at FROM ${schema}.messages m WHERE m.queue_name = queue AND ${slices.due}
      AND m.visible_at > due_after AND m.visible_at <= now ORDER BY m.visible_at LIMIT 1),
    (SELECT m.visible_at FROM ${schema}.messages m WHERE m.queue_name = queue AND ${slices.last}
      AND m.visible_at > due_after AND m.visible_at <= now ORDER BY m.visible_at LIMIT 1),
    begun - ${stillCommitting}) - interval '1 microsecond' INTO due_at;
  SELECT m.id - 1 INTO next_id FROM ${schema}.messages m WHERE ${inOrderAfter("m", "after_id")} AND ${slices.fresh}
    ORDER BY ${orderOf("m")} LIMIT 1;
  PERFORM set_config(${setting}, format('%s %s %s', greatest(coalesce(next_id, last_id), 0),
    greatest(${microseconds("due_at")}, 0), ${microseconds("whole_at")}), false);
END`,
};

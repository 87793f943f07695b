import { planSettings, type SqlFunction } from "./function.ts";
import { schema } from "./names.ts";
import { inOrderAfter, orderOf, partitions } from "./tables.ts";

/** A scan that reads this number of index entries more than it may return is expensive. */
const expensiveEntries = 1000;

/** Max age of a skipped message. A message whose transaction takes longer to commit is found by the next full scan. */
const commitMargin = "interval '100 ms'";

/** Name of the session setting that stores where claims of a queue begin. */
const setting = "'mdb_queue.look_' || to_hex(hashtextextended(queue, 0))";

/** Number of index entries of messages that this session has read; the difference within one transaction is exact. */
const entriesRead = ["messages_fresh", "messages_due", "messages_last"]
  .map((index) => `coalesce(pg_stat_get_xact_tuples_returned('${schema}.${index}'::regclass), 0)`)
  .join(" + ");

const microseconds = (time: string) => `(extract(epoch FROM ${time}) * 1000000)::bigint`;
const timeOf = (text: string) => `to_timestamp(${text}::double precision / 1000000)`;

/**
 * Returns where a claim of this session begins its scan of the messages: after those that earlier claims found dead, or
 * at the beginning of the index. The position is a session setting, `ID DUE_US FULL_US`: last skipped id, last skipped
 * due time, time of the next full scan. `whole_at` is that time, null while full scans are cheap. A user who changes
 * the setting hides messages from the own session for at most a minute.
 */
export const beginScan: SqlFunction = {
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
 * Stores where the session's next claim of the queue begins, if a full scan read many index entries of dead rows. The
 * next full scan follows after a second, or after 20 times its duration if that is longer, and at most a minute.
 */
export const endScan: SqlFunction = {
  name: "end_look",
  parameters: `queue text, most integer, begun timestamptz, entries bigint, whole_at timestamptz, last_id bigint,
    after_id bigint, due_after timestamptz`,
  returns: "void",
  settings: planSettings,
  body: `DECLARE
  now timestamptz := clock_timestamp();
  due_at timestamptz;
  next_id bigint;
BEGIN
  IF after_id = 0 THEN
    IF ${entriesRead} - entries <= ${expensiveEntries} + 3 * most THEN
      IF whole_at IS NOT NULL THEN
        PERFORM set_config(${setting}, '', false);
      END IF;
      RETURN;
    END IF;
    whole_at := now + least(greatest(20 * (now - begun), interval '1 s'), interval '1 min');
  END IF;
  SELECT least(
    (SELECT m.visible_at FROM ${schema}.messages m WHERE m.queue_name = queue AND ${partitions.due}
      AND m.visible_at > due_after AND m.visible_at <= now ORDER BY m.visible_at LIMIT 1),
    (SELECT m.visible_at FROM ${schema}.messages m WHERE m.queue_name = queue AND ${partitions.last}
      AND m.visible_at > due_after AND m.visible_at <= now ORDER BY m.visible_at LIMIT 1),
    begun - ${commitMargin}) - interval '1 microsecond' INTO due_at;
  SELECT m.id - 1 INTO next_id FROM ${schema}.messages m WHERE ${inOrderAfter("m", "after_id")} AND ${partitions.unclaimed}
    ORDER BY ${orderOf("m")} LIMIT 1;
  PERFORM set_config(${setting}, format('%s %s %s', greatest(coalesce(next_id, last_id), 0),
    greatest(${microseconds("due_at")}, 0), ${microseconds("whole_at")}), false);
END`,
};

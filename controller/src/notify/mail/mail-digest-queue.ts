import type { Database } from "#kernel/history/database.ts";
import { millisecondsOf, timeOf } from "#kernel/history/sql-timestamps.ts";
import type { EventEntry } from "#kernel/store/outbox-entry.ts";

/** The queue of events for digests, by channel, in the history. */
export interface MailDigestQueue {
  /** Adds an event; duplicates are ignored. */
  add(channelId: string, event: Pick<EventEntry, "id" | "occurredAt">): Promise<void>;
  /** Ids of the channels with queued events. */
  channels(): Promise<string[]>;
  /** The oldest entries of a channel: positions of at most 20,000, and the events of the first `eventsMax`. */
  waiting(channelId: string, eventsMax: number): Promise<QueuedDigest>;
  /** Removes entries that were sent. */
  remove(positions: readonly string[]): Promise<void>;
  /** Deletes the entries of a channel. */
  forget(channelId: string): Promise<void>;
}

export interface QueuedDigest {
  readonly positions: readonly string[];
  readonly events: readonly Pick<EventEntry, "id" | "occurredAt" | "type" | "data">[];
}

const entriesMax = 20_000;

export function createMailDigestQueue(database: () => Database): MailDigestQueue {
  return {
    async add(channelId, { id, occurredAt }) {
      await database().query(
        `insert into mail_digest (channel_id, event_id, occurred_at) values ($1, $2, ${timeOf("$3::bigint")})
         on conflict (channel_id, event_id) do nothing`,
        [channelId, id, occurredAt],
      );
    },
    async channels() {
      const rows = await database().read<{ channel_id: string }>("select distinct channel_id from mail_digest");
      return rows.map((row) => row.channel_id);
    },
    async waiting(channelId, eventsMax) {
      const positions = await database().read<{ place: string }>(
        "select place from mail_digest where channel_id = $1 order by place limit $2",
        [channelId, entriesMax],
      );
      const all = positions.map(({ place }) => place);
      const rows = await database().read<{ id: string; type: string; data: EventEntry["data"]; occurred_at: string }>(
        `select e.id, e.type, e.data, ${millisecondsOf("e.occurred_at")} as occurred_at
         from mail_digest d join event e on e.id = d.event_id and e.occurred_at = d.occurred_at
         where d.place = any ($1::bigint[]) order by d.place`,
        [all.slice(0, eventsMax)],
      );
      const events = rows.map(({ id, type, data, occurred_at }) => ({
        id,
        type,
        data,
        occurredAt: Number(occurred_at),
      }));
      return { positions: all, events };
    },
    async remove(positions) {
      await database().query("delete from mail_digest where place = any ($1::bigint[])", [positions]);
    },
    async forget(channelId) {
      await database().query("delete from mail_digest where channel_id = $1", [channelId]);
    },
  };
}

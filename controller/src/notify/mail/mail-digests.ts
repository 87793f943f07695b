import type { EventEntry } from "#kernel/store/outbox-entry.ts";
import type { Database } from "#kernel/history/database.ts";
import { millisecondsOf, timeOf } from "#kernel/history/times.ts";

/** Events that wait to be told together, a channel each. */
export interface MailDigests {
  /** An event that waits already stays once. */
  add(channelId: string, event: Pick<EventEntry, "id" | "occurredAt">): Promise<void>;
  /** Channels for which something waits. */
  channels(): Promise<string[]>;
  /** What came first: all places, `placesMax` at most, and the events of the first `shown`. */
  waiting(channelId: string, shown: number): Promise<WaitingDigest>;
  /** Once they were told. */
  remove(places: readonly string[]): Promise<void>;
  /** Drops what waits for a channel. */
  forget(channelId: string): Promise<void>;
}

export interface WaitingDigest {
  readonly places: readonly string[];
  readonly events: readonly Pick<EventEntry, "id" | "occurredAt" | "type" | "data">[];
}

const placesMax = 20_000;

export function createMailDigests(database: () => Database): MailDigests {
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
    async waiting(channelId, shown) {
      const places = await database().read<{ place: string }>(
        "select place from mail_digest where channel_id = $1 order by place limit $2",
        [channelId, placesMax],
      );
      const all = places.map(({ place }) => place);
      const rows = await database().read<{ id: string; type: string; data: EventEntry["data"]; occurred_at: string }>(
        `select e.id, e.type, e.data, ${millisecondsOf("e.occurred_at")} as occurred_at
         from mail_digest d join event e on e.id = d.event_id and e.occurred_at = d.occurred_at
         where d.place = any ($1::bigint[]) order by d.place`,
        [all.slice(0, shown)],
      );
      const events = rows.map(({ id, type, data, occurred_at }) => ({
        id,
        type,
        data,
        occurredAt: Number(occurred_at),
      }));
      return { places: all, events };
    },
    async remove(places) {
      await database().query("delete from mail_digest where place = any ($1::bigint[])", [places]);
    },
    async forget(channelId) {
      await database().query("delete from mail_digest where channel_id = $1", [channelId]);
    },
  };
}

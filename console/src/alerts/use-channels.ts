import type { Channel } from "@holdfast/sdk/responses.ts";
import { type Live, useLive } from "../live/use-live.ts";
import { account, refusalOf } from "../session/account.ts";

interface Channels {
  readonly channels: readonly Channel[];
  /** Id of the channel of rules that name none; undefined without one. */
  readonly defaultChannel: string | undefined;
  /** The channel of a rule as text: "on-call", "on-call, by default", or "events only". */
  channelText(id: string | null): string;
  readonly live: Live<readonly Channel[]>;
  /** Requests the channels and the default channel again. */
  reload(): void;
}

const maxChannels = 200;

/** The notification channels of the organization; none for a role that may not read them. */
export function useChannels(): Channels {
  const { alerts, channels } = account.value.client;
  const mayRead = refusalOf("webhooks:read") === undefined;
  const live = useLive<readonly Channel[]>("channels", async (signal) =>
    mayRead ? channels.list({ signal, limit: maxChannels }).toArray() : [],
  );
  const ofRules = useLive<string | null>("default channel", async (signal) =>
    mayRead ? (await alerts.defaultChannel({ signal })).channel_id : null,
  );
  const found = live.data ?? [];
  const defaultChannel = ofRules.data ?? undefined;
  return {
    channels: found,
    defaultChannel,
    channelText(id) {
      const channel = found.find((each) => each.id === (id ?? defaultChannel));
      return channel === undefined ? "events only" : id === null ? `${channel.name}, by default` : channel.name;
    },
    live,
    reload() {
      live.reload();
      ofRules.reload();
    },
  };
}

import { createSecretKey, type KeyObject } from "node:crypto";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { channelKind, type WebhookChannelSpec } from "./channel.ts";

/** Sealed for this channel: it does not open as another one's. */
export function sealChannelSecret(secret: string, channelId: string, sealer: Sealer): string {
  return sealer.seal(secret, keyOf(channelKind, channelId));
}

/** Answers the key that signs, opened once for each state of the channel. */
export function createChannelKeys(sealer: Sealer): (channelId: string, spec: WebhookChannelSpec) => KeyObject {
  const opened = new WeakMap<WebhookChannelSpec, KeyObject>();
  return (channelId, spec) => {
    const key =
      opened.get(spec) ?? createSecretKey(sealer.open(spec.sealedSecret, keyOf(channelKind, channelId)), "utf8");
    opened.set(spec, key);
    return key;
  };
}

import { createSecretKey, type KeyObject } from "node:crypto";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, type Resource } from "#kernel/store/resource.ts";

/** An alert channel: a webhook or an e-mail address. Names need not be unique. */
export type ChannelObject = Resource<ChannelSpec, ChannelStatus>;

export const channelKind = defineKind<ChannelObject>("channel", {
  deletedWithOrganization: true,
  quotas: [{ name: "channels", label: "channels", limit: 20, isPerOrganization: true }],
});

export type ChannelSpec = WebhookChannelSpec | EmailChannelSpec;

export interface WebhookChannelSpec {
  readonly type: "webhook";
  readonly url: string;
  /** The secret, sealed for this object. */
  readonly sealedSecret: string;
}

export interface EmailChannelSpec {
  readonly type: "email";
  readonly address: string;
}

export interface ChannelStatus {
  /** Time of the confirmation in milliseconds since 1970; null before, and for webhooks. */
  readonly confirmedAt: number | null;
  /** The current confirmation link; null for none. */
  readonly confirmation: Confirmation | null;
}

/** A confirmation link, valid once. */
export interface Confirmation {
  /** Keyed hash of the link's token. */
  readonly tokenHash: string;
  readonly expiresAt: number;
}

/** The secret sealed for this channel; it cannot be opened for another one. */
export function sealChannelSecret(secret: string, channelId: string, sealer: Sealer): string {
  return sealer.seal(secret, keyOf(channelKind, channelId));
}

/** Returns a function for a channel's signing key. The key is opened once per revision of the channel. */
export function createChannelKeys(sealer: Sealer): (channelId: string, spec: WebhookChannelSpec) => KeyObject {
  const opened = new WeakMap<WebhookChannelSpec, KeyObject>();
  return (channelId, spec) => {
    const key =
      opened.get(spec) ?? createSecretKey(sealer.open(spec.sealedSecret, keyOf(channelKind, channelId)), "utf8");
    opened.set(spec, key);
    return key;
  };
}

import { createSecretKey, type KeyObject } from "node:crypto";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import type { NewChannelConfig } from "@holdfast/proto/holdfast/v1/channel_pb.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, type Resource } from "#kernel/store/resource.ts";
import { isMailAddress } from "../mail/mail-address.ts";
import { checkedUrl } from "../webhook/check-webhook.ts";

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

/** The validated config of a channel. */
export type CheckedConfig =
  | { readonly type: "webhook"; readonly url: string }
  | { readonly type: "email"; readonly address: string };

interface ConfigDeps {
  readonly egress: Pick<EgressClient, "check">;
  /** True if the installation has a mail server. */
  readonly sendsMail: boolean;
}

/**
 * Validates a config. Throws INVALID_REQUEST that names the field, TARGET_NOT_ALLOWED, and NOT_CONFIGURED for mail
 * without a server.
 */
export async function checkedConfig(
  type: ChannelSpec["type"],
  { address, url }: NewChannelConfig,
  { egress, sendsMail }: ConfigDeps,
  signal: AbortSignal,
): Promise<CheckedConfig> {
  const [expected, foreign] = type === "webhook" ? (["url", "address"] as const) : (["address", "url"] as const);
  const values = { address, url };
  if (values[foreign] !== undefined)
    throw invalid({
      field: `config.${foreign}`,
      code: "unknown_field",
      detail: `must be absent for a channel of type ${type}`,
    });
  const value = values[expected];
  if (value === undefined)
    throw invalid({
      field: `config.${expected}`,
      code: "required",
      detail: `is required for a channel of type ${type}`,
    });
  if (type === "webhook") return { type, url: await checkedUrl(value, egress, signal, "config.url") };
  if (!isMailAddress(value))
    throw invalid({ field: "config.address", code: "invalid_address", detail: "is not an e-mail address" });
  requireMail(sendsMail);
  return { type, address: value };
}

/** Throws NOT_CONFIGURED on an installation without a mail server. */
export function requireMail(sendsMail: boolean): void {
  if (!sendsMail)
    throw new HoldfastError(
      "NOT_CONFIGURED",
      "This installation has no mail server; an operator sets HOLDFAST_SMTP_HOST.",
    );
}

import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";

/** Where alerts are sent. Its name need not be unique. */
export type ChannelObject = Resource<ChannelSpec, ChannelStatus>;

export const channelKind = defineKind<ChannelObject>("channel", {
  goesWithOrganization: true,
  quotas: [{ name: "channels", words: "channels", limit: 20, isEachs: true }],
});

export type ChannelSpec = WebhookChannelSpec | EmailChannelSpec;

export interface WebhookChannelSpec {
  readonly type: "webhook";
  readonly url: string;
  /** Sealed with the key of the object. */
  readonly sealedSecret: string;
}

export interface EmailChannelSpec {
  readonly type: "email";
  readonly address: string;
}

export interface ChannelStatus {
  /** When the address was confirmed; null before, and for webhooks. */
  readonly confirmedAt: number | null;
  /** The link that is out; null for none. */
  readonly confirmation: Confirmation | null;
}

/** A link to confirm an address by, once. */
export interface Confirmation {
  /** Of the token in the link. */
  readonly tokenHash: string;
  readonly expiresAt: number;
}

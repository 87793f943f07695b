import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { NewChannelConfig } from "@holdfast/proto/holdfast/v1/channel_pb.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { checkedUrl } from "../webhook/check-webhook.ts";
import { isMailAddress } from "../mail/mail-address.ts";
import type { ChannelSpec } from "./channel.ts";

/** The validated config of a channel. */
export type CheckedConfig =
  | { readonly type: "webhook"; readonly url: string }
  | { readonly type: "email"; readonly address: string };

interface Deps {
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
  { egress, sendsMail }: Deps,
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

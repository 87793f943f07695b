import type { Channel, ChannelDelivery, ChannelType } from "@holdfast/sdk/responses.ts";
import type { Tone } from "../tone.ts";

export const channelTypes: readonly (readonly [ChannelType, string])[] = [
  ["email", "Mail"],
  ["webhook", "HTTP endpoint"],
];

/** The address that is notified. */
export function targetOf({ config }: Pick<Channel, "config">): string {
  return config.address ?? config.url ?? "";
}

/** State of a channel: a mail address gets alerts once it is confirmed. */
export function channelStateOf({ type, confirmed_at: time, warning }: Channel): {
  readonly text: string;
  readonly tone: Tone;
} {
  if (type === "email" && time === null) return { text: "not confirmed", tone: "warn" };
  return warning === null ? { text: "ready", tone: "good" } : { text: "warning", tone: "warn" };
}

/** The result of an attempt: the status of the response, "sent", or "failed". */
export function deliveryResultOf(delivery: ChannelDelivery): { readonly text: string; readonly tone: Tone } {
  const { response_status: status, error_message: error } = delivery;
  if (error === null) return { text: status === null ? "sent" : String(status), tone: "good" };
  return { text: status === null ? "failed" : String(status), tone: "bad" };
}

import type { Delivery } from "@holdfast/sdk/responses.ts";
import type { Tone } from "../tone.ts";

/** The types of events that a webhook gets, as one text. */
export function eventsText(events: readonly string[] | null): string {
  return events === null || events.length === 0 ? "all, except opt-in events" : events.join(", ");
}

/** The types in a text with one per line or separated by commas; null for none, which subscribes to all. */
export function eventsOf(text: string): readonly string[] | null {
  const types = text.split(/[\s,]+/).filter((type) => type !== "");
  return types.length === 0 ? null : types;
}

/** The response to an attempt: "204", or the reason without a response. */
export function responseText({ response_status: status, error_message: error }: Delivery): string {
  return status === null ? (error ?? "in progress") : String(status);
}

export function deliveryTone({ response_status: status, error_message: error }: Delivery): Tone {
  if (status === null) return error === null ? "busy" : "bad";
  return status >= 200 && status < 300 ? "good" : "bad";
}

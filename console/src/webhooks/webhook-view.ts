import { type ApiDocument, resolved } from "../generic/document.ts";
import { memberOf } from "../member-of.ts";
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

/** The types of events that a webhook can get, as the installation's API describes them. */
export function eventTypesOf(document: ApiDocument): readonly string[] {
  const post = memberOf(memberOf(document.paths, "/webhooks") ?? {}, "post");
  const body = memberOf(post?.requestBody?.content ?? {}, "application/json")?.schema;
  const events = memberOf(resolved(document, body)?.properties ?? {}, "events");
  const types = resolved(document, resolved(document, events)?.items)?.enum ?? [];
  return types.filter((type) => typeof type === "string");
}

/** The text of the types with or without one of them. */
export function withEvent(text: string, type: string, isOn: boolean): string {
  const others = (eventsOf(text) ?? []).filter((each) => each !== type);
  return (isOn ? [...others, type] : others).join("\n");
}

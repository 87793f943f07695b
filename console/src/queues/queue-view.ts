import { parseExactly } from "@holdfast/sdk/exact-json.ts";
import type { QueueChange } from "@holdfast/sdk/requests.ts";
import { numberText, durationText } from "../format.ts";
import { isRecord } from "../generic/generic-view.ts";
import { memberOf } from "../member-of.ts";

/** The settings of a queue in a form. */
export interface QueueInput {
  readonly timeout: string;
  readonly attempts: string;
  readonly hasDead: boolean;
}

/** The settings of a request, of those in the form that are present. */
export function settingsOf({ timeout, attempts, hasDead }: Partial<QueueInput>): QueueChange {
  return {
    ...(timeout !== undefined && { visibility_timeout_seconds: Number(timeout) }),
    ...(attempts !== undefined && { max_attempts: Number(attempts) }),
    ...(hasDead !== undefined && { dlq_enabled: hasDead }),
  };
}

/** The parts of a count that the page shows, as names and texts. */
export function countFacts(result: unknown): readonly (readonly [string, string])[] {
  const counts = typeof result === "object" && result !== null ? (result as Readonly<Record<string, unknown>>) : {};
  const facts = [
    ["Ready", "ready_messages"],
    ["In flight", "inflight_messages"],
    ["Delayed", "delayed_messages"],
    ["Dead", "dead_messages"],
  ].map(([title = "", name = ""]) => [title, countText(memberOf(counts, name))] as const);
  const age = memberOf(counts, "oldest_age_seconds");
  return [...facts, ["Oldest message", typeof age === "number" ? durationText(age) : "none"]];
}

function countText(value: unknown): string {
  return typeof value === "number" ? numberText(value) : "unknown";
}

const maxPayloadLength = 400;

/** A payload in one line, cut after 400 characters. */
export function payloadText(payload: unknown): string {
  const text = JSON.stringify(payload) ?? "";
  return text.length > maxPayloadLength ? `${text.slice(0, maxPayloadLength)}…` : text;
}

/** The payload in a text, or the reason why it is not one. */
export function payloadOf(text: string): { readonly payload?: object; readonly fault?: string } {
  try {
    const payload = parseExactly(text);
    if (isRecord(payload)) return { payload };
  } catch (error) {
    if (error instanceof RangeError) return { fault: error.message };
    // The message below is for both.
  }
  return { fault: 'Is not a JSON object, such as {"to": "ann@example.com"}.' };
}

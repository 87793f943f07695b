import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { parseTarget } from "@holdfast/egress/target.ts";

/** Validates a URL and returns its normalized form. Throws INVALID_REQUEST `invalid_url` or TARGET_NOT_ALLOWED. */
export async function checkedUrl(
  text: string,
  egress: Pick<EgressClient, "check">,
  signal: AbortSignal,
  field = "url",
): Promise<string> {
  const parsed = parseTarget(text);
  if (!parsed.ok && parsed.fault === "invalid") throw invalid({ field, code: "invalid_url", detail: parsed.detail });
  if (!parsed.ok) throw new HoldfastError("TARGET_NOT_ALLOWED", `The URL cannot be a webhook: ${parsed.detail}.`);
  try {
    await egress.check(parsed.target, signal);
  } catch (cause) {
    if (!(cause instanceof EgressFailure)) throw cause;
    throw new HoldfastError(
      "TARGET_NOT_ALLOWED",
      "The host of the URL has a forbidden address: webhooks must not connect to it.",
      {
        cause,
      },
    );
  }
  return parsed.target.url.href;
}

/** The names of all event types. */
export interface EventTypeNames {
  has(type: string): boolean;
}

/** The types without duplicates. Throws INVALID_REQUEST `unknown_event_type` for each unknown one. */
export function checkedEvents(types: readonly string[], eventTypes: EventTypeNames): string[] {
  const faults = types.flatMap((type, index) =>
    eventTypes.has(type)
      ? []
      : [{ field: `events[${index}]`, code: "unknown_event_type", detail: "is not a type of event" }],
  );
  if (faults.length > 0) throw invalid(...faults);
  return [...new Set(types)];
}

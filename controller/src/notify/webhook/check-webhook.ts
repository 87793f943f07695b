import { closestName } from "@holdfast/common/engine-catalog/closest-name.ts";
import { type FieldFault, HoldfastError, invalid, pointerOf } from "@holdfast/common/errors.ts";
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

/** The fault of a URL that cannot be one of a webhook; its host is checked by `checkedUrl`. */
export function urlFaults(text: string | undefined): readonly FieldFault[] {
  const parsed = text === undefined ? undefined : parseTarget(text);
  if (parsed === undefined || parsed.ok || parsed.fault !== "invalid") return [];
  return [{ field: "url", pointer: "/url", code: "invalid_url", detail: parsed.detail }];
}

/** The names of all event types. */
export interface EventTypeNames {
  has(type: string): boolean;
  keys(): Iterable<string>;
}

/** A fault `unknown_event_type` for each unknown type, with its name. */
export function eventFaults(types: readonly string[], eventTypes: EventTypeNames): readonly FieldFault[] {
  return types.flatMap((type, index) => {
    if (eventTypes.has(type)) return [];
    const field = `events[${index}]`;
    const closest = closestName(type, eventTypes.keys());
    const hint = closest === undefined ? "docs/reference/events.md lists all" : `did you mean ${closest}?`;
    const detail = `must be a type of event, and ${JSON.stringify(shortened(type))} is none: ${hint}`;
    return [{ field, pointer: pointerOf(field), code: "unknown_event_type", detail }];
  });
}

const textMax = 64;

function shortened(type: string): string {
  return type.length > textMax ? `${type.slice(0, textMax).toWellFormed()}…` : type;
}

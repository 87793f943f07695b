import type { Clock } from "@holdfast/common/clock.ts";
import type { VendorUrls } from "./destinations/destination.ts";
import type { SendRequest, SendTarget } from "./export-sender.ts";
import type { ExportDataType } from "./metrics-export.ts";

const probeMs = 10_000;

/**
 * Tests the destination without data, for the integration's type of data, within ten seconds in all by default.
 * Resolves to the error message; undefined on success.
 */
export type ProbeDestination = (
  target: SendTarget,
  dataType: ExportDataType,
  signal: AbortSignal,
) => Promise<string | undefined>;

export function createProbe(deps: {
  readonly send: SendRequest;
  readonly vendors: VendorUrls;
  readonly clock: Clock;
  readonly withinMs?: number;
}): ProbeDestination {
  const { send, vendors, clock, withinMs = probeMs } = deps;
  return async (target, dataType, signal) => {
    const endsAt = clock.monotonicMs() + withinMs;
    const context = { nowMs: clock.now(), vendors };
    for (const request of await target.destination.probe(target.configuration, context)) {
      if (dataType !== "both" && request.about !== undefined && request.about !== dataType) continue;
      const deadlineMs = Math.max(1, endsAt - clock.monotonicMs());
      const verdict = await send(request, target, { deadlineMs, signal });
      if (verdict.kind !== "accepted") return verdict.why;
    }
    return undefined;
  };
}

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { metricWindow } from "./metric-window.ts";

const now = Date.parse("2026-03-15T14:32:10Z");
const dayMs = 86_400_000;

interface WindowRequest {
  readonly period?: string;
  readonly resolution?: string;
  /** Milliseconds before now. */
  readonly start?: number;
  readonly end?: number;
}

function windowOf({ start, end, ...rest }: WindowRequest) {
  const ago = (ms: number) => timestampFromMs(now - ms);
  const times = { ...(start !== undefined && { start: ago(start) }), ...(end !== undefined && { end: ago(end) }) };
  return metricWindow({ ...rest, ...times }, now);
}
const at = (text: string) => Date.parse(text) / 1_000;

test.each([
  [{}, "1h", "1m", "2026-03-15T13:32:00Z", "2026-03-15T14:33:00Z"],
  // The protos refuse it earlier; here the result must not be NaN.
  [{ period: "constructor" }, "constructor", "1m", "2026-03-15T13:32:00Z", "2026-03-15T14:33:00Z"],
  [{ period: "15m" }, "15m", "1m", "2026-03-15T14:17:00Z", "2026-03-15T14:33:00Z"],
  [{ period: "24h", resolution: "1m" }, "24h", "1m", "2026-03-14T14:32:00Z", "2026-03-15T14:33:00Z"],
  [{ period: "24h", resolution: "1h" }, "24h", "1h", "2026-03-14T14:00:00Z", "2026-03-15T15:00:00Z"],
  [{ period: "7d" }, "7d", "5m", "2026-03-08T14:30:00Z", "2026-03-15T14:35:00Z"],
  [{ start: 30 * dayMs }, undefined, "1h", "2026-02-13T14:00:00Z", "2026-03-15T15:00:00Z"],
  [{ start: 2 * dayMs, end: dayMs }, undefined, "1m", "2026-03-13T14:32:00Z", "2026-03-14T14:33:00Z"],
  [{ start: dayMs / 24, end: -dayMs }, undefined, "1m", "2026-03-15T13:32:00Z", "2026-03-15T14:33:00Z"],
] as const)("%j asks for period %s in steps of %s", (request, period, resolution, from, to) => {
  expect(windowOf(request)).toMatchObject({ period, resolution, fromS: at(from), toS: at(to) });
});

test.each([
  [{ period: "7d", resolution: "1m" }, "resolution", /too fine .* 5m, 1h$/],
  [{ start: 9 * dayMs, end: 8.9 * dayMs, resolution: "5m" }, "resolution", /allowed is 1h$/],
  [{ start: 1_000, period: "1h" }, "period", /combined with start/],
  [{ end: 1_000 }, "end", /needs start/],
  [{ start: 401 * dayMs }, "start", /400 days/],
  [{ start: -1_000 }, "start", /before now/],
  [{ start: 1_000, end: 2_000 }, "end", /after start/],
] as const)("%j is refused for its %s", (request, field, detail) => {
  expect(windowOf(request)).toEqual([expect.objectContaining({ field, detail: expect.stringMatching(detail) })]);
});

import type { MetricItem, Origin } from "../export-item.ts";
import { labelsOf } from "../export-item.ts";

/**
 * A WriteRequest of Prometheus remote write 1.0 (`prometheus.WriteRequest` of remote.proto), written by hand: one series for each
 * metric of an origin, its labels sorted, samples in their order.
 *
 *     WriteRequest { repeated TimeSeries timeseries = 1 }
 *     TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2 }
 *     Label        { string name = 1; string value = 2 }
 *     Sample       { double value = 1; int64 timestamp = 2 }
 */
export function writeRequest(items: readonly MetricItem[]): Buffer {
  const parts: Uint8Array[] = [];
  for (const series of Map.groupBy(items, (item) => labelBytesOf(item)).entries()) {
    const [labels, samples] = series;
    const length = labels.length + samples.length * sampleBytes;
    const body = Buffer.allocUnsafe(length);
    body.set(labels, 0);
    let at = labels.length;
    for (const sample of samples) at = putSample(body, at, sample);
    parts.push(tagged(0x0a, at), body.subarray(0, at));
  }
  return Buffer.concat(parts);
}

/** Tag and length of a sample, tag and eight bytes of its value, tag and at most ten of its time. */
const sampleBytes = 2 + 9 + 11;

function putSample(body: Buffer, at: number, { value, timeMs }: MetricItem): number {
  const time = varint(timeMs);
  body[at] = 0x12;
  body[at + 1] = 9 + 1 + time.length;
  body[at + 2] = 0x09;
  body.writeDoubleLE(value, at + 3);
  body[at + 11] = 0x10;
  body.set(time, at + 12);
  return at + 12 + time.length;
}

/** Label bytes by origin and metric: the same object for the same series, so that it groups by it. */
const kept = new WeakMap<Origin, Map<string, Buffer>>();

function labelBytesOf({ origin, metric }: MetricItem): Buffer {
  const ofOrigin = kept.get(origin) ?? new Map<string, Buffer>();
  kept.set(origin, ofOrigin);
  const known = ofOrigin.get(metric);
  if (known !== undefined) return known;
  const labels = [["__name__", `platform_${metric}`] as const, ...labelsOf(origin)];
  const bytes = Buffer.concat(labels.map(([name, value]) => field(0x0a, [field(0x0a, name), field(0x12, value)])));
  ofOrigin.set(metric, bytes);
  return bytes;
}

function field(tag: number, content: string | readonly Uint8Array[]): Uint8Array {
  const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : Buffer.concat(content);
  return Buffer.concat([tagged(tag, bytes.length), bytes]);
}

function tagged(tag: number, length: number): Uint8Array {
  return Uint8Array.from([tag, ...varint(length)]);
}

/** Of a whole number that is not negative, up to 2^53. */
function varint(number: number): number[] {
  const bytes: number[] = [];
  let rest = number;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return bytes;
}

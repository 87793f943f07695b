import type { MetricItem, Origin } from "../export-item.ts";
import { labelsOf } from "../export-item.ts";

/**
 * A WriteRequest of Prometheus remote write 1.0 (`prometheus.WriteRequest` of remote.proto), encoded by hand for speed:
 * one series for each metric of an origin, labels sorted, samples in order.
 *
 *     WriteRequest { repeated TimeSeries timeseries = 1 }
 *     TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2 }
 *     Label        { string name = 1; string value = 2 }
 *     Sample       { double value = 1; int64 timestamp = 2 }
 */
export function writeRequest(items: readonly MetricItem[]): Buffer {
  const series = seriesOf(items);
  const buffer = Buffer.allocUnsafe(series.reduce((sum, { length }) => sum + 1 + varintLength(length) + length, 0));
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
  let at = 0;
  for (const { labels, samples, length } of series) {
    buffer[at] = 0x0a;
    at = putVarint(buffer, at + 1, length);
    buffer.set(labels, at);
    at += labels.length;
    for (const sample of samples) at = putSample(buffer, view, at, sample);
  }
  return buffer;
}

interface Series {
  readonly metric: string;
  readonly labels: Buffer;
  readonly samples: MetricItem[];
  /** Encoded length of labels and samples in bytes. */
  length: number;
  /** The series that followed this one in the previous sample of its origin. */
  next: Series | undefined;
}

/**
 * Groups items into series. Items of one origin are mostly consecutive and repeat their metrics in the same order, so
 * the expected next series is tried before the map.
 */
function seriesOf(items: readonly MetricItem[]): readonly Series[] {
  const all: Series[] = [];
  const byOrigin = new Map<Origin, Map<string, Series>>();
  let last: Origin | undefined;
  let ofOrigin = new Map<string, Series>();
  let next: Series | undefined;
  let before: Series | undefined;
  for (const item of items) {
    if (item.origin !== last) {
      last = item.origin;
      ofOrigin = byOrigin.get(last) ?? new Map<string, Series>();
      byOrigin.set(last, ofOrigin);
      next = undefined;
      before = undefined;
    }
    let series = next?.metric === item.metric ? next : ofOrigin.get(item.metric);
    if (series === undefined) {
      const labels = labelBytesOf(item);
      series = { metric: item.metric, labels, samples: [], length: labels.length, next: undefined };
      ofOrigin.set(item.metric, series);
      all.push(series);
    }
    series.samples.push(item);
    series.length += 2 + sampleLength(item.timeMs);
    if (before !== undefined) before.next = series;
    before = series;
    next = series.next;
  }
  return all;
}

/** Length of an encoded sample: two tags, eight bytes of the value, and the time. */
function sampleLength(timeMs: number): number {
  return 10 + varintLength(timeMs);
}

function putSample(buffer: Buffer, view: DataView, at: number, { value, timeMs }: MetricItem): number {
  buffer[at] = 0x12;
  buffer[at + 1] = sampleLength(timeMs);
  buffer[at + 2] = 0x09;
  view.setFloat64(at + 3, value, true);
  buffer[at + 11] = 0x10;
  return putVarint(buffer, at + 12, timeMs);
}

/** Encoded labels by origin and metric, cached while the origin is in use. */
const labelCache = new WeakMap<Origin, Map<string, Buffer>>();

function labelBytesOf({ origin, metric }: MetricItem): Buffer {
  const ofOrigin = labelCache.get(origin);
  const cached = ofOrigin?.get(metric);
  if (cached !== undefined) return cached;
  const labels = [["__name__", `platform_${metric}`] as const, ...labelsOf(origin)];
  const bytes = Buffer.concat(labels.map(([name, value]) => field(0x0a, [field(0x0a, name), field(0x12, value)])));
  if (ofOrigin === undefined) labelCache.set(origin, new Map([[metric, bytes]]));
  else ofOrigin.set(metric, bytes);
  return bytes;
}

function field(tag: number, content: string | readonly Uint8Array[]): Uint8Array {
  const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : Buffer.concat(content);
  return Buffer.concat([tagged(tag, bytes.length), bytes]);
}

function tagged(tag: number, length: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(1 + varintLength(length));
  bytes[0] = tag;
  putVarint(bytes, 1, length);
  return bytes;
}

/** Current times take a varint of six bytes, the lower four of which have 28 bits. */
const sixBytes = { from: 2 ** 35, to: 2 ** 42, lower: 2 ** 28 };

/** Length of a varint for an integer from 0 to 2^53. */
function varintLength(number: number): number {
  if (number >= sixBytes.from && number < sixBytes.to) return 6;
  let length = 1;
  for (let limit = 0x80; number >= limit; limit *= 0x80) length += 1;
  return length;
}

/** Writes a varint; returns the position after it. */
function putVarint(bytes: Uint8Array, at: number, number: number): number {
  if (number >= sixBytes.from && number < sixBytes.to) {
    const upper = Math.floor(number / sixBytes.lower);
    const lower = number - upper * sixBytes.lower;
    bytes[at] = lower | 0x80;
    bytes[at + 1] = (lower >>> 7) | 0x80;
    bytes[at + 2] = (lower >>> 14) | 0x80;
    bytes[at + 3] = (lower >>> 21) | 0x80;
    bytes[at + 4] = upper | 0x80;
    bytes[at + 5] = upper >>> 7;
    return at + 6;
  }
  let remaining = number;
  // Bit shifts work up to 32 bits only.
  for (; remaining >= 0x80000000; remaining = Math.floor(remaining / 0x80)) bytes[at++] = (remaining % 0x80) | 0x80;
  for (; remaining >= 0x80; remaining >>>= 7) bytes[at++] = (remaining & 0x7f) | 0x80;
  bytes[at] = remaining;
  return at + 1;
}

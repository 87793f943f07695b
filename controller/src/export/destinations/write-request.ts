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
  const series = seriesOf(items);
  const whole = Buffer.allocUnsafe(series.reduce((sum, { length }) => sum + 1 + varintLength(length) + length, 0));
  const view = new DataView(whole.buffer, whole.byteOffset, whole.byteLength);
  let at = 0;
  for (const { labels, samples, length } of series) {
    whole[at] = 0x0a;
    at = putVarint(whole, at + 1, length);
    whole.set(labels, at);
    at += labels.length;
    for (const sample of samples) at = putSample(whole, view, at, sample);
  }
  return whole;
}

interface Series {
  readonly metric: string;
  readonly labels: Buffer;
  readonly samples: MetricItem[];
  /** Of labels and samples, as they are written. */
  length: number;
  /** What followed it last. */
  next: Series | undefined;
}

/**
 * Items of one origin mostly follow each other, moment by moment with the metrics in one order: the series behind the one that was
 * last is mostly the next one, and a look-up by metric finds the others.
 */
function seriesOf(items: readonly MetricItem[]): readonly Series[] {
  const all: Series[] = [];
  const byOrigin = new Map<Origin, Map<string, Series>>();
  let last: Origin | undefined;
  let its = new Map<string, Series>();
  let next: Series | undefined;
  let before: Series | undefined;
  for (const item of items) {
    if (item.origin !== last) {
      last = item.origin;
      its = byOrigin.get(last) ?? new Map<string, Series>();
      byOrigin.set(last, its);
      next = undefined;
      before = undefined;
    }
    let series = next?.metric === item.metric ? next : its.get(item.metric);
    if (series === undefined) {
      const labels = labelBytesOf(item);
      series = { metric: item.metric, labels, samples: [], length: labels.length, next: undefined };
      its.set(item.metric, series);
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

/** Of what a sample has behind its own tag and length: both tags, eight bytes of the value, and the time. */
function sampleLength(timeMs: number): number {
  return 10 + varintLength(timeMs);
}

function putSample(whole: Buffer, view: DataView, at: number, { value, timeMs }: MetricItem): number {
  whole[at] = 0x12;
  whole[at + 1] = sampleLength(timeMs);
  whole[at + 2] = 0x09;
  view.setFloat64(at + 3, value, true);
  whole[at + 11] = 0x10;
  return putVarint(whole, at + 12, timeMs);
}

/** Label bytes by origin and metric, for as long as the origin is in use. */
const kept = new WeakMap<Origin, Map<string, Buffer>>();

function labelBytesOf({ origin, metric }: MetricItem): Buffer {
  const ofOrigin = kept.get(origin);
  const known = ofOrigin?.get(metric);
  if (known !== undefined) return known;
  const labels = [["__name__", `platform_${metric}`] as const, ...labelsOf(origin)];
  const bytes = Buffer.concat(labels.map(([name, value]) => field(0x0a, [field(0x0a, name), field(0x12, value)])));
  if (ofOrigin === undefined) kept.set(origin, new Map([[metric, bytes]]));
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

/** Times of these years take six bytes, the lower four of which are of 28 bits. */
const sixBytes = { from: 2 ** 35, to: 2 ** 42, lower: 2 ** 28 };

/** Of a whole number that is not negative, up to 2^53. */
function varintLength(number: number): number {
  if (number >= sixBytes.from && number < sixBytes.to) return 6;
  let length = 1;
  for (let limit = 0x80; number >= limit; limit *= 0x80) length += 1;
  return length;
}

/** Where what follows is. */
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
  let rest = number;
  // Beyond 32 bits there are no shifts.
  for (; rest >= 0x80000000; rest = Math.floor(rest / 0x80)) bytes[at++] = (rest % 0x80) | 0x80;
  for (; rest >= 0x80; rest >>>= 7) bytes[at++] = (rest & 0x7f) | 0x80;
  bytes[at] = rest;
  return at + 1;
}

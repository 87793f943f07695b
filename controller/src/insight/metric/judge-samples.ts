import type { Sample } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { StoredSample } from "./samples/samples.ts";

export interface JudgedSamples {
  readonly samples: readonly StoredSample[];
  readonly refused: number;
  /** Why some were refused; empty when none were. */
  readonly reason: string;
}

/** What an outage may take at most, as long as agents keep them. */
const oldestMs = 24 * 3_600_000;
/** Clocks differ. By more than this, what a machine says of time is not true. */
const aheadMs = 60_000;
/** Slots of a later version's catalog are kept too. */
const slotsMax = 256;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Pure: the samples that are possible. A machine that sends impossible ones harms no other machine's. */
export function judgeSamples(machineId: string, told: readonly Sample[], now: number): JudgedSamples {
  if (!uuid.test(machineId)) return { samples: [], refused: told.length, reason: "The machine's id is no UUID." };
  const samples: StoredSample[] = [];
  let reason = "";
  for (const sample of told) {
    const fault = faultOf(sample, now);
    if (fault === undefined) samples.push({ machineId, timeMs: Number(sample.timeMs), values: valuesOf(sample) });
    else reason ||= fault;
  }
  return { samples, refused: told.length - samples.length, reason };
}

function faultOf({ timeMs, slots, values }: Sample, now: number): string | undefined {
  const time = Number(timeMs);
  if (time > now + aheadMs) {
    return `The machine's clock is at least ${Math.round((time - now) / 1_000)} s ahead of the controller's.`;
  }
  if (time < now - oldestMs) return `It is over 24 hours old: of ${new Date(Math.max(time, 0)).toISOString()}.`;
  if (slots.length === 0 || slots.length !== values.length) return "It has not one value for each slot.";
  if (!slots.every((slot) => slot >= 1 && slot <= slotsMax)) return "It names a slot that no catalog has.";
  if (!values.every(Number.isFinite)) return "It has a value that is no number.";
  return undefined;
}

function valuesOf({ slots, values }: Sample): ReadonlyMap<number, number> {
  return new Map(slots.map((slot, index) => [slot, values.at(index) ?? 0]));
}

import type { Sample } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { StoredSample } from "./samples/samples.ts";

export interface CheckedSamples {
  readonly samples: readonly StoredSample[];
  readonly refused: number;
  /** Reason for the refusal of samples; empty if none were refused. */
  readonly reason: string;
}

/** Maximum age of a sample: agents spool samples for this time, so older ones are implausible. */
const oldestMs = 24 * 3_600_000;
/** Maximum tolerated lead of a machine's clock. */
const clockSkewMaxMs = 60_000;
/** Maximum slot of a metric. Slots of later versions of the catalog are stored as well. */
const slotsMax = 256;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Selects the plausible samples of a batch. A machine that sends implausible ones affects no other machine. */
export function checkSamples(machineId: string, reported: readonly Sample[], now: number): CheckedSamples {
  if (!uuid.test(machineId))
    return { samples: [], refused: reported.length, reason: "The machine's id is not a UUID." };
  const samples: StoredSample[] = [];
  let reason = "";
  for (const sample of reported) {
    const fault = faultOf(sample, now);
    if (fault === undefined) samples.push({ machineId, timeMs: Number(sample.timeMs), values: valuesOf(sample) });
    else reason ||= fault;
  }
  return { samples, refused: reported.length - samples.length, reason };
}

function faultOf({ timeMs, slots, values }: Sample, now: number): string | undefined {
  const time = Number(timeMs);
  if (time > now + clockSkewMaxMs) {
    return `The machine's clock is at least ${Math.round((time - now) / 1_000)} s ahead of the controller's.`;
  }
  if (time < now - oldestMs) return `The sample is over 24 hours old: of ${new Date(Math.max(time, 0)).toISOString()}.`;
  if (slots.length === 0 || slots.length !== values.length)
    return "The sample does not have one value for each metric.";
  if (!slots.every((slot) => slot >= 1 && slot <= slotsMax))
    return "The sample names a metric number that no catalog has.";
  if (!values.every(Number.isFinite)) return "The sample has a value that is not finite.";
  return undefined;
}

function valuesOf({ slots, values }: Sample): ReadonlyMap<number, number> {
  return new Map(slots.map((slot, index) => [slot, values.at(index) ?? 0]));
}

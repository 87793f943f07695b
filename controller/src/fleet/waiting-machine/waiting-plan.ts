/** What a waiting machine must be for an owner to take it; its size is made the owner's when it is claimed. */
export interface MachineKind {
  readonly engine: string;
  readonly version: string;
  readonly zone: string;
  readonly storageTier: string;
}

/** One that was made ahead, as it is. */
export interface WaitingFacts {
  readonly id: string;
  readonly kind: MachineKind;
  /** Empty until it is made. */
  readonly image: string;
  /**
   * "waiting": certain to be free, "making": not or not yet, "failed": no agent was ever on it, "used": its agent holds an
   * instance, so it is not what the store takes it for.
   */
  readonly state: "making" | "waiting" | "failed" | "used";
  /** Its host takes machines and can spare what it takes; not so of one that is cordoned or short. */
  readonly isSpared: boolean;
}

/** How many of a kind are to wait, of its newest image; empty where that is not known. */
export interface WantedMachines {
  readonly kind: MachineKind;
  readonly image: string;
  readonly count: number;
  /** Can a host of its zone spare what one more would take? */
  readonly admitted: boolean;
}

export interface ObservedWaiting {
  readonly machines: readonly WaitingFacts[];
  /** Most wanted first. Others are not wanted at all. */
  readonly wanted: readonly WantedMachines[];
  /** Machines that somebody wants are being made: not now. */
  readonly busy: boolean;
}

export type WaitingStep =
  | { readonly kind: "make"; readonly of: MachineKind; readonly image: string }
  | { readonly kind: "remove"; readonly machineId: string }
  /** Treats it as an unknown machine: the orphan sweep keeps its data, if there is any. */
  | { readonly kind: "disown"; readonly machineId: string };

export interface WaitingLimits {
  /** As many wait of each kind that is always wanted. */
  readonly least: number;
  /** Never more than so many in all; 0 for none at all. */
  readonly most: number;
}

/** Demand is remembered for so long. */
export const demandKeptMs = 3_600_000;
/** Demands within this time of each other count as one burst. */
const burstMs = 60_000;

/** Pure: what to do next. One is made at a time; those too many go at once, but none that may hold data. */
export function planWaiting({ machines, wanted, busy }: ObservedWaiting): WaitingStep[] {
  const lost = machines.filter(({ state }) => state === "used" || state === "failed");
  const steps: WaitingStep[] = lost.map(({ id }) => ({ kind: "disown", machineId: id }));
  const good = machines.filter(({ state, isSpared }) => isSpared && (state === "waiting" || state === "making"));
  const kept = wanted.flatMap((each) => fitting(good, each).slice(0, each.count));
  const surplus = machines.filter((machine) => machine.state === "waiting" && !kept.includes(machine));
  steps.push(...surplus.map(({ id }): WaitingStep => ({ kind: "remove", machineId: id })));
  if (busy || good.some(({ state }) => state === "making")) return steps;
  const short = wanted.find((each) => each.admitted && fitting(good, each).length < each.count);
  if (short !== undefined) steps.push({ kind: "make", of: short.kind, image: short.image });
  return steps;
}

/** Machines of this kind, ready ones first; machines with an older image do not count. */
function fitting(machines: readonly WaitingFacts[], { kind, image }: WantedMachines): WaitingFacts[] {
  const isOlder = (machine: WaitingFacts) => image !== "" && machine.image !== "" && machine.image !== image;
  const same = machines.filter((machine) => isSameKind(machine.kind, kind) && !isOlder(machine));
  return [...same].sort((a, b) => Number(b.state === "waiting") - Number(a.state === "waiting"));
}

/** Can one stand in for the other? */
export function isSameKind(a: MachineKind, b: MachineKind): boolean {
  return a.engine === b.engine && a.version === b.version && a.zone === b.zone && a.storageTier === b.storageTier;
}

/** Pure: the most that came at once in the last hour, of these times in milliseconds. */
export function peakOf(times: readonly number[], now: number): number {
  const recent = times.filter((at) => now - at < demandKeptMs).sort((a, b) => a - b);
  let peak = 0;
  for (let first = 0, last = 0; last < recent.length; last += 1) {
    while ((recent[last] ?? 0) - (recent[first] ?? 0) > burstMs) first += 1;
    peak = Math.max(peak, last - first + 1);
  }
  return peak;
}

/** Pure: as many of each kind as came at once lately, at least the least of those always wanted, and never over the most. */
export function wantedOf(
  peaks: readonly { readonly kind: MachineKind; readonly peak: number }[],
  always: readonly MachineKind[],
  { least, most }: WaitingLimits,
): Pick<WantedMachines, "kind" | "count">[] {
  const kinds = [
    ...always,
    ...peaks.map(({ kind }) => kind).filter((kind) => !always.some((a) => isSameKind(a, kind))),
  ];
  let left = most;
  return kinds.flatMap((kind) => {
    const peak = peaks.find((each) => isSameKind(each.kind, kind))?.peak ?? 0;
    const count = Math.min(left, Math.max(peak, always.includes(kind) ? least : 0));
    left -= count;
    return count === 0 ? [] : [{ kind, count }];
  });
}

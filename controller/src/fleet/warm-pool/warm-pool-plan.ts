import { engineCatalog } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { MachineSpecObject, Software } from "../machine/machine.ts";

/**
 * Properties that a machine of the pool must share with a request. The size of the machine is changed when it is
 * claimed.
 */
export interface PoolKind {
  readonly software: Software;
  readonly zone: string;
  readonly storageTier: string;
}

/** An observed machine of the pool. */
export interface PooledMachine {
  readonly id: string;
  readonly kind: PoolKind;
  /** Empty until an image is chosen. */
  readonly image: string;
  /**
   * `waiting`: certainly free; `creating`: not certain yet; `failed`: creation failed before an agent enrolled; `used`:
   * its agent reports an instance, so it has an owner although its object has none.
   */
  readonly state: "creating" | "waiting" | "failed" | "used";
  /** True if the machine's host accepts machines and has free capacity. */
  readonly hostHasCapacity: boolean;
}

/** The desired number of machines of one kind, from the newest image (empty if it is unknown). */
export interface PoolTarget {
  readonly kind: PoolKind;
  readonly image: string;
  readonly count: number;
  /** True if a host of the kind's zone has capacity for one more. */
  readonly admitted: boolean;
}

export interface ObservedPool {
  readonly machines: readonly PooledMachine[];
  /** Desired numbers, in order of priority. Machines of other kinds are surplus. */
  readonly targets: readonly PoolTarget[];
  /** True while machines with owners are being created, which refills must not slow down. */
  readonly busy: boolean;
}

export type WarmPoolStep =
  | { readonly kind: "create"; readonly of: PoolKind; readonly image: string }
  | { readonly kind: "remove"; readonly machineId: string }
  /**
   * Deletes only the machine's object. The orphan sweep removes the machine, and retains its data for a week if it has
   * any.
   */
  | { readonly kind: "disown"; readonly machineId: string };

export interface WarmPoolLimits {
  /** Minimum number of machines of each expected kind. */
  readonly min: number;
  /** Maximum number of machines in the pool; 0 disables it. */
  readonly max: number;
}

/** Time for which demand counts. */
export const demandWindowMs = 3_600_000;
/** Duration of a burst: requests within this time count together. */
const burstMs = 60_000;

/** The next steps. Machines are created one at a time. Surplus is removed immediately, unless it may have data. */
export function planWarmPool({ machines, targets, busy }: ObservedPool): WarmPoolStep[] {
  const unusable = machines.filter(({ state }) => state === "used" || state === "failed");
  const steps: WarmPoolStep[] = unusable.map(({ id }) => ({ kind: "disown", machineId: id }));
  const usable = machines.filter(
    ({ state, hostHasCapacity }) => hostHasCapacity && (state === "waiting" || state === "creating"),
  );
  const retained = targets.flatMap((each) => fitting(usable, each).slice(0, each.count));
  const surplus = machines.filter((machine) => machine.state === "waiting" && !retained.includes(machine));
  steps.push(...surplus.map(({ id }): WarmPoolStep => ({ kind: "remove", machineId: id })));
  if (busy || usable.some(({ state }) => state === "creating")) return steps;
  const missing = targets.find((each) => each.admitted && fitting(usable, each).length < each.count);
  if (missing !== undefined) steps.push({ kind: "create", of: missing.kind, image: missing.image });
  return steps;
}

/** Machines of this kind with the newest image, waiting ones first. */
function fitting(machines: readonly PooledMachine[], { kind, image }: PoolTarget): PooledMachine[] {
  const isOlder = (machine: PooledMachine) => image !== "" && machine.image !== "" && machine.image !== image;
  const same = machines.filter((machine) => isSameKind(machine.kind, kind) && !isOlder(machine));
  return [...same].sort((a, b) => Number(b.state === "waiting") - Number(a.state === "waiting"));
}

/** True if a machine of one kind can serve a request for the other. */
export function isSameKind(a: PoolKind, b: PoolKind): boolean {
  return (
    a.software.name === b.software.name &&
    a.software.version === b.software.version &&
    a.zone === b.zone &&
    a.storageTier === b.storageTier
  );
}

/** Number of requests in the largest burst of the last hour. Times are in milliseconds. */
export function peakOf(times: readonly number[], now: number): number {
  const recent = times.filter((at) => now - at < demandWindowMs).sort((a, b) => a - b);
  let peak = 0;
  for (let first = 0, last = 0; last < recent.length; last += 1) {
    while ((recent[last] ?? 0) - (recent[first] ?? 0) > burstMs) first += 1;
    peak = Math.max(peak, last - first + 1);
  }
  return peak;
}

/**
 * The desired number of machines of each kind: the size of its recent burst, at least `min` for the expected
 * kinds (`always`), and at most `max` in all.
 */
export function targetsOf(
  peaks: readonly { readonly kind: PoolKind; readonly peak: number }[],
  always: readonly PoolKind[],
  { min, max }: WarmPoolLimits,
): Pick<PoolTarget, "kind" | "count">[] {
  const kinds = [
    ...always,
    ...peaks.map(({ kind }) => kind).filter((kind) => !always.some((a) => isSameKind(a, kind))),
  ];
  let remaining = max;
  return kinds.flatMap((kind) => {
    const peak = peaks.find((each) => isSameKind(each.kind, kind))?.peak ?? 0;
    const count = Math.min(remaining, Math.max(peak, always.includes(kind) ? min : 0));
    remaining -= count;
    return count === 0 ? [] : [{ kind, count }];
  });
}

const gib = 1024 ** 3;

/** Kinds of machines that new services are expected to need: the default version of each pooled engine. */
export function expectedDemand({ storageTiers }: CatalogData): Omit<PoolKind, "zone">[] {
  const storageTier = storageTiers[0]?.storageTier;
  if (storageTier === undefined) return [];
  return engineCatalog
    .filter(({ hasWarmPool }) => hasWarmPool)
    .map(({ engine, defaultVersion }) => ({ software: { name: engine, version: defaultVersion }, storageTier }));
}

/** Size of the smallest plan, for machines of the pool: a running machine can grow but not shrink. */
export function smallestSize({
  plans,
  limits,
}: CatalogData): Pick<MachineSpecObject, "vcpu" | "memoryBytes" | "rootBytes" | "diskBytes"> {
  const [plan] = [...plans].sort((a, b) => a.memoryGb - b.memoryGb);
  if (plan === undefined) throw new Error("the catalog has no plans");
  const { vcpu, memoryGb, rootGb } = plan;
  const diskBytes = limits.storageSizeGbMin * gib;
  return { vcpu, memoryBytes: memoryGb * gib, rootBytes: rootGb * gib, diskBytes };
}

import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Admission } from "@holdfast/compute/compute-provider.ts";
import type { HostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import type { Fleet } from "../fleet.ts";
import { type HostObject, acceptsMachines } from "../host/host.ts";
import { imageOf } from "../host/host-images.ts";
import { refusalOn } from "../placement/place-machine.ts";
import { again } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import { machineKind, type MachineObject, type MachineSpecObject } from "../machine/machine.ts";
import { isFree } from "./warm-pool.ts";
import {
  demandWindowMs,
  isSameKind,
  type PoolKind,
  peakOf,
  planWarmPool,
  type PooledMachine,
  type WarmPoolLimits,
  type WarmPoolStep,
  targetsOf,
} from "./warm-pool-plan.ts";

export interface WarmPoolWorkDeps {
  readonly provider: Pick<HostsProvider, "on">;
  readonly hosts: Pick<Collection<HostObject>, "values">;
  readonly machines: Collection<MachineObject>;
  readonly fleet: Pick<Fleet, "session" | "observation">;
  readonly begin: () => UnitOfWork;
  /** True while automation is paused, such as after a restore: no machine is created or removed. */
  readonly isPaused: () => boolean;
  /** Expected kinds: the pool has the minimum number of each in every zone that has a host with capacity. */
  readonly always: readonly Omit<PoolKind, "zone">[];
  readonly limits: WarmPoolLimits;
  /** Size of a machine until it is claimed: the smallest plan. */
  readonly size: Pick<MachineSpecObject, "vcpu" | "memoryBytes" | "rootBytes" | "diskBytes">;
  readonly installationId: string;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly log: Log;
}

/** The only key. It is not renamed: during a rolling upgrade controllers of both versions must own the same key. */
const key = "waiting-machines";
const idleIntervalMs = 5_000;
const busyIntervalMs = 1_000;
/** Pause of refills after a machine got an owner, so that refills do not slow down its start. */
const refillPauseMs = 3_000;
const creationTimeoutMs = 60_000;
/** Pause of refills on a host that had no capacity. */
const shortageRetryMs = 600_000;
/** Pause of refills of a kind whose creation failed. */
const failureRetryMs = 60_000;

/**
 * Creates and removes machines so that the warm pool covers the expected demand, as far as hosts have capacity. It has
 * one key, so one controller at a time does it.
 */
export function createWarmPoolWork(deps: WarmPoolWorkDeps): ControlLoop {
  const { provider, machines, clock, log } = deps;
  const startedAt = clock.now();
  /** Times at which machines got an owner, as observed by this controller, by machine id. */
  const demand = new Map<string, { readonly kind: PoolKind; readonly at: number }>();
  /** Hosts without capacity, with the time of the next check. */
  const retryHostAt = new Map<string, number>();
  /** Kinds whose creation failed, with the time of the next attempt. */
  const retryKindAt = new Map<string, number>();

  function recordDemand(id: string, at: number): void {
    const machine = machines.get(id)?.object;
    if (machine === undefined || machine.spec.owner === null || demand.has(id)) return;
    demand.set(id, { kind: kindOf(machine.spec), at });
  }

  function targets(now: number, pooled: readonly PooledMachine[], zones: ReadonlySet<string>) {
    for (const [id, { at }] of demand)
      if (now - at >= demandWindowMs && machines.get(id) === undefined) demand.delete(id);
    const peaks: { kind: PoolKind; times: number[]; existing: number }[] = [];
    const of = (kind: PoolKind) => {
      const found = peaks.find((each) => isSameKind(each.kind, kind));
      if (found !== undefined) return found;
      const added = { kind, times: [], existing: 0 };
      peaks.push(added);
      return added;
    };
    for (const { kind, at } of demand.values()) of(kind).times.push(at);
    // A controller that started recently did not observe the earlier demand, so the number of existing machines is
    // used.
    if (now - startedAt < demandWindowMs) for (const { kind } of pooled) of(kind).existing += 1;
    const counted = peaks.map(({ kind, times, existing }) => ({ kind, peak: Math.max(peakOf(times, now), existing) }));
    for (const { kind, state } of pooled) if (state === "failed") retryKindAt.set(textOf(kind), now + failureRetryMs);
    const isFailing = ({ kind }: { kind: PoolKind }) => (retryKindAt.get(textOf(kind)) ?? 0) > now;
    const always = [...zones].flatMap((zone) => deps.always.map((kind) => ({ ...kind, zone })));
    return targetsOf(counted, always, deps.limits).filter((each) => !isFailing(each));
  }

  function isBusy(now: number): boolean {
    for (const { at } of demand.values()) if (now - at < refillPauseMs) return true;
    return [...machines.values()].some(
      ({ object: { metadata, spec, status } }) =>
        spec.owner !== null && isBeingCreated(status.state) && now - metadata.updatedAt < creationTimeoutMs,
    );
  }

  /** Hosts that accept machines and have capacity for machines of the pool, by id. */
  async function hostsWithCapacity(now: number, signal: AbortSignal): Promise<Map<string, HostObject>> {
    const withCapacity = new Map<string, HostObject>();
    const [kind] = deps.always;
    if (kind === undefined) return withCapacity;
    for (const { object: host } of deps.hosts.values()) {
      const { id } = host.metadata;
      if (!acceptsMachines(host) || host.status.state !== "ready") continue;
      const kindHere = { ...kind, zone: host.spec.zone };
      const emptyRequest = { ...machineRequest(kindHere), memoryBytes: 0, rootBytes: 0, diskBytes: 0 };
      const exceedsLimit = refusalOn(emptyRequest, host, objects()) !== undefined;
      const spec = { ...providerSpec(kindHere, deps), hostId: id };
      const { admitted } = exceedsLimit
        ? { admitted: false }
        : await provider.on(id).admit(spec, signal).catch(notAdmitted);
      if (admitted) withCapacity.set(id, host);
      else retryHostAt.set(id, now + shortageRetryMs);
    }
    return withCapacity;
  }

  function canTake(host: HostObject, kind: PoolKind, now: number): boolean {
    if ((retryHostAt.get(host.metadata.id) ?? 0) > now) return false;
    return refusalOn(machineRequest(kind), host, objects()) === undefined;
  }

  const machineRequest = (kind: PoolKind) => ({ ...newPooledMachine({ of: kind, image: "" }, deps).spec, id: "" });
  const objects = () => Iterator.from(machines.values()).map(({ object }) => object);

  async function perform(step: WarmPoolStep, signal: AbortSignal): Promise<void> {
    const unit = deps.begin();
    if (step.kind === "create") {
      unit.create(machineKind, newPooledMachine(step, deps));
    } else {
      const machine = machines.get(step.machineId);
      if (machine === undefined) return;
      const { metadata } = machine.object;
      const now = clock.now();
      if (step.kind === "disown") {
        log.warn("warm pool machine left to the orphan sweep", {
          machine: metadata.id,
          reason: machine.object.status.reason,
        });
        unit.remove(machineKind, machine);
      } else {
        const deleted = { ...metadata, deletionRequestedAt: now, updatedAt: now };
        unit.update(machineKind, machine, { ...machine.object, metadata: deleted });
      }
    }
    try {
      await machines.untilRevision(await unit.commit(signal), 1_000);
    } catch (error) {
      // The machine was claimed, or its agent enrolled. The next pass plans with the current state.
      if (!(error instanceof Conflict)) throw error;
    }
  }

  for (const { object } of machines.values()) recordDemand(object.metadata.id, object.metadata.createdAt);

  return {
    reconciler: {
      name: "warm-pool",
      async reconcile(_key, signal) {
        if (deps.isPaused()) return again(idleIntervalMs, "automation is paused");
        const now = clock.now();
        const withCapacity = await hostsWithCapacity(now, signal);
        const pooled = pooledMachines(deps, withCapacity, now);
        const inZone = (zone: string) => withCapacity.values().filter((host) => host.spec.zone === zone);
        const zones = new Set(withCapacity.values().map(({ spec }) => spec.zone));
        const all = targets(now, pooled, zones).map(({ kind, count }) => ({
          kind,
          count,
          image: newestOf(kind, inZone(kind.zone)),
          admitted: inZone(kind.zone).some((host) => canTake(host, kind, now)),
        }));
        if (all.length === 0 && pooled.length === 0) return again(idleIntervalMs, "hosts");
        const busy = isBusy(now);
        const steps = planWarmPool({ machines: pooled, targets: all, busy });
        for (const step of steps) await perform(step, signal);
        const isActive = busy || steps.length > 0 || pooled.some(({ state }) => state === "creating");
        return again(isActive ? busyIntervalMs : idleIntervalMs, "demand and capacity");
      },
    },
    keys: () => [key],
    subscribe(onChange) {
      return machines.subscribe((id) => {
        const isNew = !demand.has(id) && machines.get(id) !== undefined;
        recordDemand(id, clock.now());
        if (isNew) onChange(key);
      });
    },
    concurrency: 1,
  };
}

/** The machines of the pool that are not being deleted. */
function pooledMachines(
  { machines, fleet }: WarmPoolWorkDeps,
  withCapacity: ReadonlyMap<string, HostObject>,
  now: number,
): PooledMachine[] {
  const found: PooledMachine[] = [];
  for (const { object } of machines.values()) {
    const { metadata, spec, status } = object;
    if (spec.owner !== null || metadata.deletionRequestedAt !== undefined) continue;
    const failed = status.state === "failed" && status.certificate === null;
    const stored = isFree(object, fleet, now) ? "waiting" : failed ? "failed" : "creating";
    const state = fleet.observation(metadata.id) === undefined ? stored : "used";
    const hostHasCapacity = spec.hostId === null || withCapacity.has(spec.hostId);
    found.push({ id: metadata.id, kind: kindOf(spec), image: spec.image, state, hostHasCapacity });
  }
  return found;
}

/** Refused admission for a host that does not respond, so that machines on other hosts are still created. */
function notAdmitted(error: unknown): Admission {
  return { admitted: false, reason: String(error) };
}

function isBeingCreated(state: MachineObject["status"]["state"]): boolean {
  return state === "pending" || state === "creating" || state === "starting" || state === "claimed";
}

/** The newest image on all these hosts; empty if they differ. */
function newestOf({ software }: PoolKind, hosts: Iterable<HostObject>): string {
  const found = new Set<string>();
  for (const host of hosts) found.add(imageOf(host, software)?.image ?? "");
  const [only = ""] = found;
  return found.size === 1 ? only : "";
}

function newPooledMachine(
  { of, image }: { readonly of: PoolKind; readonly image: string },
  { size, clock, newId }: WarmPoolWorkDeps,
): MachineObject {
  const id = newId();
  const now = clock.now();
  return {
    metadata: newMetadata(id, now),
    spec: {
      owner: null,
      ...of,
      image,
      hostId: null,
      apart: "preferred",
      ...size,
      power: "on",
      serverNames: [],
    },
    status: { state: "pending", reason: "", address: "", publicAddress: "", enrollment: null, certificate: null },
  };
}

function textOf({ software, zone, storageTier }: PoolKind): string {
  return `${software.name} ${software.version} ${zone} ${storageTier}`;
}

function kindOf({ software, zone, storageTier }: MachineSpecObject): PoolKind {
  return { software, zone, storageTier };
}

function providerSpec({ software, ...kind }: PoolKind, { size, installationId }: WarmPoolWorkDeps) {
  const { vcpu, memoryBytes, rootBytes, diskBytes } = size;
  const { name: engine, version } = software;
  const plan = { vcpu, memoryBytes, rootBytes };
  return { id: "", installationId, plan, diskBytes, engine, version, ...kind, ahead: true };
}

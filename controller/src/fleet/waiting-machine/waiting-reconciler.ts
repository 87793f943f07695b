import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Admission } from "@holdfast/compute/compute-provider.ts";
import type { HostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import type { Fleet } from "../fleet.ts";
import { type HostObject, isOpen } from "../host/host.ts";
import { refusalOn } from "../placement/place-machine.ts";
import { again } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import { machineKind, type MachineObject, type MachineSpecObject } from "../machine/machine.ts";
import { isFree } from "./waiting-machines.ts";
import {
  demandKeptMs,
  isSameKind,
  type MachineKind,
  peakOf,
  planWaiting,
  type WaitingFacts,
  type WaitingLimits,
  type WaitingStep,
  wantedOf,
} from "./waiting-plan.ts";

export interface WaitingWorkDeps {
  readonly provider: Pick<HostsProvider, "on">;
  readonly hosts: Pick<Collection<HostObject>, "values">;
  readonly machines: Collection<MachineObject>;
  readonly fleet: Pick<Fleet, "session" | "observation">;
  readonly begin: () => UnitOfWork;
  /** Does anything stand against deleting, or against taking the store's word? */
  readonly held: () => boolean;
  /** Kinds of which the least number always waits, in each zone that has a host that can spare it. */
  readonly always: readonly Omit<MachineKind, "zone">[];
  readonly limits: WaitingLimits;
  /** Of a machine until somebody claims it: the smallest that there is. */
  readonly size: Pick<MachineSpecObject, "vcpu" | "memoryBytes" | "rootBytes" | "diskBytes">;
  readonly installationId: string;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly log: Log;
}

const key = "waiting-machines";
const lookAgainMs = 5_000;
const workingMs = 1_000;
/** A machine that is wanted has the processors to itself for so long after it was asked for. */
const quietMs = 3_000;
const madeWithinMs = 60_000;
/** The host was short: so long nothing is made ahead. */
const shortMs = 600_000;
/** One could not be made: so long none of its kind is. */
const failingMs = 60_000;

/** Keeps as many machines waiting as are likely to be wanted soon, and as the hosts can spare. One key: one controller does it. */
export function createWaitingWork(deps: WaitingWorkDeps): ControlLoop {
  const { provider, machines, clock, log } = deps;
  const startedAt = clock.now();
  /** When machines got an owner, as far as this controller saw it. */
  const demand = new Map<string, { readonly kind: MachineKind; readonly at: number }>();
  /** Hosts that were short lately, by the time that they are asked again. */
  const shortUntil = new Map<string, number>();
  /** Kinds of which one could not be made lately, by the time that it is tried again. */
  const failing = new Map<string, number>();

  function note(id: string, at: number): void {
    const machine = machines.get(id)?.object;
    if (machine === undefined || machine.spec.owner === null || demand.has(id)) return;
    demand.set(id, { kind: kindOf(machine.spec), at });
  }

  function wanted(now: number, made: readonly WaitingFacts[], zones: ReadonlySet<string>) {
    for (const [id, { at }] of demand)
      if (now - at >= demandKeptMs && machines.get(id) === undefined) demand.delete(id);
    const peaks: { kind: MachineKind; times: number[]; kept: number }[] = [];
    const of = (kind: MachineKind) => {
      const known = peaks.find((each) => isSameKind(each.kind, kind));
      if (known !== undefined) return known;
      const fresh = { kind, times: [], kept: 0 };
      peaks.push(fresh);
      return fresh;
    };
    for (const { kind, at } of demand.values()) of(kind).times.push(at);
    // What came before it was there to see, a controller knows only by what waits already.
    if (now - startedAt < demandKeptMs) for (const { kind } of made) of(kind).kept += 1;
    const counted = peaks.map(({ kind, times, kept }) => ({ kind, peak: Math.max(peakOf(times, now), kept) }));
    for (const { kind, state } of made) if (state === "failed") failing.set(textOf(kind), now + failingMs);
    const isFailing = ({ kind }: { kind: MachineKind }) => (failing.get(textOf(kind)) ?? 0) > now;
    const always = [...zones].flatMap((zone) => deps.always.map((kind) => ({ ...kind, zone })));
    return wantedOf(counted, always, deps.limits).filter((each) => !isFailing(each));
  }

  function isBusy(now: number): boolean {
    for (const { at } of demand.values()) if (now - at < quietMs) return true;
    return [...machines.values()].some(
      ({ object: { metadata, spec, status } }) =>
        spec.owner !== null && isBeingMade(status.state) && now - metadata.updatedAt < madeWithinMs,
    );
  }

  /** Hosts that take machines and can spare what those take that wait, by id. */
  async function sparedHosts(now: number, signal: AbortSignal): Promise<Map<string, HostObject>> {
    const spared = new Map<string, HostObject>();
    const [kind] = deps.always;
    if (kind === undefined) return spared;
    for (const { object: host } of deps.hosts.values()) {
      const { id } = host.metadata;
      if (!isOpen(host) || host.status.state !== "ready") continue;
      const kindHere = { ...kind, zone: host.spec.zone };
      const nothingMore = { ...wantedMachine(kindHere), memoryBytes: 0, rootBytes: 0, diskBytes: 0 };
      const isOver = refusalOn(nothingMore, host, objects()) !== undefined;
      const spec = { ...providerSpec(kindHere, deps), hostId: id };
      const { admitted } = isOver ? { admitted: false } : await provider.on(id).admit(spec, signal).catch(notNow);
      if (admitted) spared.set(id, host);
      else shortUntil.set(id, now + shortMs);
    }
    return spared;
  }

  function canTake(host: HostObject, kind: MachineKind, now: number): boolean {
    if ((shortUntil.get(host.metadata.id) ?? 0) > now) return false;
    return refusalOn(wantedMachine(kind), host, objects()) === undefined;
  }

  const wantedMachine = (kind: MachineKind) => ({ ...newWaiting({ of: kind, image: "" }, deps).spec, id: "" });
  const objects = () => Iterator.from(machines.values()).map(({ object }) => object);

  async function perform(step: WaitingStep, signal: AbortSignal): Promise<void> {
    const unit = deps.begin();
    if (step.kind === "make") {
      unit.create(machineKind, newWaiting(step, deps));
    } else {
      const machine = machines.get(step.machineId);
      if (machine === undefined) return;
      const { metadata } = machine.object;
      const now = clock.now();
      if (step.kind === "disown") {
        log.warn("machine given up that was to wait", { machine: metadata.id, reason: machine.object.status.reason });
        unit.remove(machineKind, machine);
      } else {
        const deleted = { ...metadata, deletionRequestedAt: now, updatedAt: now };
        unit.update(machineKind, machine, { ...machine.object, metadata: deleted });
      }
    }
    try {
      await machines.reached(await unit.commit(signal), 1_000);
    } catch (error) {
      // Somebody claimed it, or its agent wrote; the next look sees what is.
      if (!(error instanceof Conflict)) throw error;
    }
  }

  for (const { object } of machines.values()) note(object.metadata.id, object.metadata.createdAt);

  return {
    reconciler: {
      name: key,
      async reconcile(_key, signal) {
        if (deps.held()) return again(lookAgainMs, "what the store says is in doubt");
        const now = clock.now();
        const spared = await sparedHosts(now, signal);
        const made = waitingFacts(deps, spared, now);
        const inZone = (zone: string) => spared.values().filter((host) => host.spec.zone === zone);
        const zones = new Set(spared.values().map(({ spec }) => spec.zone));
        const all = wanted(now, made, zones).map(({ kind, count }) => ({
          kind,
          count,
          image: newestOf(kind, inZone(kind.zone)),
          admitted: inZone(kind.zone).some((host) => canTake(host, kind, now)),
        }));
        if (all.length === 0 && made.length === 0) return again(lookAgainMs, "hosts");
        const busy = isBusy(now);
        const steps = planWaiting({ machines: made, wanted: all, busy });
        for (const step of steps) await perform(step, signal);
        const works = busy || steps.length > 0 || made.some(({ state }) => state === "making");
        return again(works ? workingMs : lookAgainMs, "demand, and room on the host");
      },
    },
    keys: () => [key],
    subscribe(onChange) {
      return machines.subscribe((id) => {
        const isNew = !demand.has(id) && machines.get(id) !== undefined;
        note(id, clock.now());
        if (isNew) onChange(key);
      });
    },
    concurrency: 1,
  };
}

/** Machines that nobody owns and that are not on their way out. */
function waitingFacts(
  { machines, fleet }: WaitingWorkDeps,
  spared: ReadonlyMap<string, HostObject>,
  now: number,
): WaitingFacts[] {
  const found: WaitingFacts[] = [];
  for (const { object } of machines.values()) {
    const { metadata, spec, status } = object;
    if (spec.owner !== null || metadata.deletionRequestedAt !== undefined) continue;
    const failed = status.state === "failed" && status.certificate === null;
    const known = isFree(object, fleet, now) ? "waiting" : failed ? "failed" : "making";
    const state = fleet.observation(metadata.id) === undefined ? known : "used";
    const isSpared = spec.hostId === null || spared.has(spec.hostId);
    found.push({ id: metadata.id, kind: kindOf(spec), image: spec.image, state, isSpared });
  }
  return found;
}

/** A host that fails to answer must not prevent machines elsewhere. */
function notNow(error: unknown): Admission {
  return { admitted: false, reason: String(error) };
}

function isBeingMade(state: MachineObject["status"]["state"]): boolean {
  return state === "pending" || state === "creating" || state === "starting" || state === "claimed";
}

/** The image that all these hosts would give it; empty when they differ. */
function newestOf({ engine, version }: MachineKind, hosts: Iterable<HostObject>): string {
  const known = new Set<string>();
  for (const { status } of hosts) {
    const facts = status.images.find((image) => image.engine === engine && image.version === version);
    known.add(facts?.image ?? "");
  }
  const [only = ""] = known;
  return known.size === 1 ? only : "";
}

function newWaiting(
  { of, image }: { readonly of: MachineKind; readonly image: string },
  { size, clock, newId }: WaitingWorkDeps,
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

function textOf({ engine, version, zone, storageTier }: MachineKind): string {
  return `${engine} ${version} ${zone} ${storageTier}`;
}

function kindOf({ engine, version, zone, storageTier }: MachineSpecObject): MachineKind {
  return { engine, version, zone, storageTier };
}

function providerSpec(kind: MachineKind, { size, installationId }: WaitingWorkDeps) {
  const { vcpu, memoryBytes, rootBytes, diskBytes } = size;
  return { id: "", installationId, plan: { vcpu, memoryBytes, rootBytes }, diskBytes, ...kind, ahead: true };
}

import { ComputeFailure, ComputePending, HostUnreachable, isDiskFull } from "@holdfast/compute/compute-failure.ts";
import type { MachineFacts } from "@holdfast/compute/compute-provider.ts";
import { again, type ReconcileOutcome, type Reconciler, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Resource } from "#kernel/store/resource.ts";
import type { Owners } from "../owner/owners.ts";
import type { MachineObject, MachineStatus } from "./machine.ts";
import { emptyMemory, hasUncountedCrash, isCrashed, type MachineMemory } from "./machine-memory.ts";
import { crashWindowMs, foundEvent, type MachineStep, type ObservedMachine, planMachine } from "./machine-plan.ts";
import {
  statusAddressesOf,
  type MachineStepDeps,
  performMachineStep,
  stopGraceMs,
  writeStatus,
} from "./machine-steps.ts";

/** The part of a host's object on which machines depend. */
type MachineHost = Resource<{ readonly destroyedAt: number | null }, { readonly state: string }>;

export interface MachineReconcilerDeps extends MachineStepDeps {
  readonly hosts: Pick<Collection<MachineHost>, "get" | "subscribe">;
  readonly owners: Pick<Owners, "onHostLost" | "remedyOf">;
  /** The agent's stream, at any controller; `connectedAt` in milliseconds since 1970. */
  readonly session: (machineId: string) => { readonly connectedAt: number } | undefined;
}

const failureRetryDelayMs = 15_000;
const pendingRetryDelayMs = 1_000;
const unreachableRetryDelayMs = 15_000;

/** Converges one machine to its spec: creates, resizes, starts, stops and destroys it. Key: machine id. */
function createMachineReconciler(deps: MachineReconcilerDeps): Reconciler {
  const memories = new Map<string, MachineMemory>();
  const startedAt = deps.clock.monotonicMs();

  async function observe(machine: MachineObject, signal: AbortSignal): Promise<ObservedMachine> {
    const { id } = machine.metadata;
    const now = deps.clock.now();
    const facts = await deps.provider.get(id, signal);
    const session = deps.session(id);
    const connectedMs = session && Math.max(0, now - session.connectedAt);
    const memory = memories.get(id) ?? emptyMemory;
    const monotonicMs = deps.clock.monotonicMs();
    const isSilent = facts?.state === "running" && session === undefined;
    const silentSince = isSilent ? (memory.silentSince ?? monotonicMs) : undefined;
    const hasCrashed = hasUncountedCrash(machine, facts, memory);
    // A shutdown resets the count of crashes.
    const formerCrashes = machine.spec.power === "off" ? [] : memory.crashes;
    const crashes = (hasCrashed ? [...formerCrashes, monotonicMs] : formerCrashes).filter(
      (crash) => monotonicMs - crash < crashWindowMs,
    );
    const crashedAt = hasCrashed ? now : memory.crashedAt;
    const started = memory.started && !hasCrashed;
    const crashedRun = hasCrashed ? facts?.starts : facts && memory.crashedRun;
    memories.set(id, { ...memory, silentSince, crashes, crashedAt, started, crashedRun });
    // The write of a counted crash may have failed.
    if (hasCrashed || isCrashed(machine, facts))
      await writeStatus(id, "crashed", { reason: "The machine ended and is restarted." }, deps, signal);
    const silentMs = silentSince === undefined ? 0 : monotonicMs - silentSince;
    const crashesAgoMs = crashes.map((crash) => monotonicMs - crash);
    const { enrollmentDelivered } = memory;
    const uptimeMs = monotonicMs - startedAt;
    return {
      facts,
      connectedMs,
      silentMs,
      crashesAgoMs,
      crashedAt,
      enrollmentDelivered,
      now,
      uptimeMs,
      controllers: deps.controllers(),
      caFingerprint: deps.caFingerprint(),
    };
  }

  async function perform(step: MachineStep, machine: MachineObject, signal: AbortSignal): Promise<void> {
    const { id } = machine.metadata;
    const record = (change: Partial<MachineMemory>) => {
      memories.set(id, { ...(memories.get(id) ?? emptyMemory), ...change });
    };
    const deliversEnrollment = step.kind === "start" || step.kind === "enroll";
    if (deliversEnrollment) record({ enrollmentDelivered: false });
    if (step.kind === "stop") record({ started: false });
    await performMachineStep(step, machine, deps, signal);
    if (deliversEnrollment) record({ enrollmentDelivered: true, started: true });
  }

  /**
   * Performs the steps in order. For a running machine with an owner, a failed resize does not prevent the other steps.
   * Resolves with the reason of that failure, or an empty string.
   */
  async function performAll(
    steps: readonly MachineStep[],
    machine: MachineObject,
    { facts }: ObservedMachine,
    signal: AbortSignal,
  ): Promise<string> {
    const mustKeepRunning =
      facts?.state === "running" && machine.status.state === "running" && machine.spec.owner !== null;
    let sizeProblem = "";
    for (const step of steps) {
      const isSize = step.kind === "growDisk" || step.kind === "resize";
      try {
        await perform(step, machine, signal);
      } catch (error) {
        const reason = mustKeepRunning && isSize ? failureReason(error) : undefined;
        if (reason === undefined) throw error;
        deps.log.warn("machine not resized", { machine: machine.metadata.id, reason });
        sizeProblem ||= reason;
      }
    }
    return sizeProblem;
  }

  return {
    name: "machine",
    async reconcile(id, signal) {
      const stored = deps.machines.get(id);
      if (stored === undefined) {
        memories.delete(id);
        return settled;
      }
      const machine = stored.object;
      if (isLost(machine, deps)) return settleLost(machine, deps, signal);
      try {
        const observed = await observe(machine, signal);
        const { steps, recheckInMs } = planMachine(machine, observed);
        const sizeProblem = await performAll(steps, machine, observed, signal);
        if (steps.some(({ kind }) => kind === "deleteObject")) return settled;
        if (steps.some(({ kind }) => kind === "place")) return again(0, "the machine has a host");
        const isUncounted = (facts: MachineFacts) => hasUncountedCrash(machine, facts, memories.get(id) ?? emptyMemory);
        const hasEnded = await writeObserved(machine, observed, { sizeProblem, isUncounted }, deps, signal);
        if (hasEnded) return again(0, "the machine ended during the pass");
        if (sizeProblem !== "") return again(failureRetryDelayMs, sizeProblem);
        return recheckInMs === null ? settled : again(recheckInMs, "restart or silence");
      } catch (error) {
        return await settleFailure(machine, error, deps, signal);
      }
    },
  };
}

/**
 * The control loop of machines, woken by the store, the provider, agents' sessions and hosts. A pass observes one
 * machine, plans (`machine-plan.ts`, without side effects), performs the steps (`machine-steps.ts`) and writes the
 * observed state.
 */
export function createMachineWork(
  deps: MachineReconcilerDeps & { readonly onSession: (onChange: (machineId: string) => void) => { close(): void } },
): ControlLoop {
  const { machines, provider } = deps;
  return {
    reconciler: createMachineReconciler(deps),
    *keys() {
      for (const { object } of machines.values()) yield object.metadata.id;
    },
    subscribe(onChange) {
      const watches = [
        machines.subscribe(onChange),
        provider.watch(onChange),
        deps.onSession(onChange),
        followHosts(deps, onChange),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
    inputs: (id) => machines.get(id)?.modRevision ?? 0n,
    concurrency: 32,
    // The time of a graceful stop, and a minute for the other steps.
    deadlineMs: stopGraceMs + 60_000,
  };
}

interface PassOutcome {
  readonly sizeProblem: string;
  /** True if the machine crashed after the pass observed it, so that the next pass has to count the crash. */
  readonly isUncounted: (facts: MachineFacts) => boolean;
}

/**
 * Writes the state and size that the provider reports after the steps. Resolves with true, and writes nothing, if the
 * machine crashed since the observation: a stored state of stopped would hide the crash from the next pass.
 */
async function writeObserved(
  machine: MachineObject,
  observed: ObservedMachine,
  { sizeProblem, isUncounted }: PassOutcome,
  deps: MachineReconcilerDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const {
    metadata: { id, generation },
    spec,
  } = machine;
  const { crashesAgoMs: crashes, crashedAt } = observed;
  const facts = await deps.provider.get(id, signal);
  if (facts === undefined) return false;
  if (isUncounted(facts)) return true;
  const event = foundEvent(machine, facts.state, observed);
  const reason = event === "failed" ? `The machine ended ${crashes.length} times within ten minutes.` : "";
  const { vcpu, memoryBytes, rootBytes = spec.rootBytes } = facts.plan;
  const size = { vcpu, memoryBytes, rootBytes, diskBytes: facts.diskBytes };
  const change: Partial<MachineStatus> = {
    size,
    sizeProblem,
    // During the back-off before a restart the state does not change.
    ...(event !== undefined && { reason }),
    crashedAt: event === "failed" ? crashedAt : undefined,
  };
  const options = { ofGeneration: generation };
  await writeStatus(id, event, { ...change, ...statusAddressesOf(facts) }, deps, signal, options);
  return false;
}

/**
 * Writes the reason of a provider's failure and retries later. Other errors go to the work queue, which logs and
 * retries.
 */
async function settleFailure(
  machine: MachineObject,
  error: unknown,
  deps: MachineReconcilerDeps,
  signal: AbortSignal,
): Promise<ReconcileOutcome> {
  const { id } = machine.metadata;
  if (error instanceof ComputePending) {
    await writeStatus(id, "createDelayed", { reason: error.message }, deps, signal);
    return again(pendingRetryDelayMs, "the provider is preparing");
  }
  if (error instanceof HostUnreachable) return settleSilence(machine, error, deps, signal);
  const reason = failureReason(error);
  if (reason === undefined) throw error;
  if (error instanceof Error && error.cause !== undefined) deps.log.warn("host failure", { machine: id, error });
  await writeStatus(id, "failed", { reason, crashedAt: undefined }, deps, signal);
  return again(failureRetryDelayMs, reason);
}

/** The provider's reason, for the machine's owner; undefined if the error is temporary or not the provider's. */
function failureReason(error: unknown): string | undefined {
  if (error instanceof ComputePending || error instanceof HostUnreachable) return undefined;
  if (error instanceof ComputeFailure) return error.message;
  return isDiskFull(error) ? "The host's disk is full." : undefined;
}

/**
 * Handles a machine whose host did not respond. Only its agent's stream proves anything about it then, and it is not
 * replaced on another host. One failed call changes no state: the host must be in state unreachable.
 */
async function settleSilence(
  { metadata, spec, status }: MachineObject,
  { message: reason }: HostUnreachable,
  deps: MachineReconcilerDeps,
  signal: AbortSignal,
): Promise<ReconcileOutcome> {
  const { id } = metadata;
  const isSilent = deps.hosts.get(spec.hostId ?? "")?.object.status.state !== "ready";
  if (metadata.deletionRequestedAt !== undefined) await writeStatus(id, "destroyOrdered", { reason }, deps, signal);
  else if (deps.session(id) !== undefined)
    await writeStatus(id, status.state === "unreachable" ? "foundRunning" : undefined, { reason }, deps, signal);
  else if (isSilent) await writeStatus(id, "hostFellSilent", { reason }, deps, signal);
  return again(isSilent ? unreachableRetryDelayMs : pendingRetryDelayMs, reason);
}

/** True if the machine's host was declared destroyed. */
function isLost({ spec }: MachineObject, { hosts }: MachineReconcilerDeps): boolean {
  return spec.hostId !== null && (hosts.get(spec.hostId)?.object.spec.destroyedAt ?? null) !== null;
}

/**
 * Handles a machine that was lost with its host. Deletes its object if it has no owner, or an owner that creates
 * another machine. The objects of other owners remain, so that no empty machine replaces lost data.
 */
async function settleLost(
  machine: MachineObject,
  deps: MachineReconcilerDeps,
  signal: AbortSignal,
): Promise<ReconcileOutcome> {
  const { metadata, spec } = machine;
  const { owner } = spec;
  const isDeleted = metadata.deletionRequestedAt !== undefined;
  if (owner === null || isDeleted || deps.owners.onHostLost(owner) === "deletes") {
    await performMachineStep({ kind: "deleteObject" }, machine, deps, signal);
    return settled;
  }
  const reason = `Host ${spec.hostId} was destroyed, and the data on it is lost. ${deps.owners.remedyOf(owner)}.`;
  await writeStatus(metadata.id, "failed", { reason, enrollment: null }, deps, signal);
  return settled;
}

/**
 * Calls back with the machines of a host whose state changed, and at any change of a host with the machines that no
 * host accepted.
 */
function followHosts({ hosts, machines }: MachineReconcilerDeps, onChange: (id: string) => void): { close(): void } {
  const seen = new Map<string, string>();
  return hosts.subscribe((hostId) => {
    const host = hosts.get(hostId)?.object;
    const state = `${host?.status.state} ${host?.spec.destroyedAt}`;
    const isNew = seen.get(hostId) !== state;
    seen.set(hostId, state);
    for (const { object } of machines.values()) {
      const { metadata, spec, status } = object;
      const waits = spec.hostId === null && status.state === "failed";
      if (waits || (isNew && spec.hostId === hostId)) onChange(metadata.id);
    }
  });
}

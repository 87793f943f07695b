import { ComputeFailure, ComputePending, HostUnreachable, isDiskFull } from "@holdfast/compute/compute-failure.ts";
import type { MachineFacts } from "@holdfast/compute/compute-provider.ts";
import { again, type Outcome, type Reconciler, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Resource } from "#kernel/store/resource.ts";
import { isUp, type MachineObject, type MachineStatus } from "./machine.ts";
import type { MachineEvent } from "./machine-lifecycle.ts";
import {
  deathsKeptMs,
  deathsMax,
  type MachineStep,
  type ObservedMachine,
  planMachine,
  toldWithinMs,
} from "./machine-plan.ts";
import { addressesOf, type MachineStepDeps, performMachineStep, stopGraceMs, writeStatus } from "./machine-steps.ts";

/** What a machine must know of its host. */
type MachineHost = Resource<{ readonly destroyedAt: number | null }, { readonly state: string }>;

export interface MachineReconcilerDeps extends MachineStepDeps {
  readonly hosts: Pick<Collection<MachineHost>, "get" | "subscribe">;
  /** The stream that the machine's agent has, at whichever controller; `connectedAt` in milliseconds since 1970. */
  readonly session: (machineId: string) => { readonly connectedAt: number } | undefined;
}

/** What a controller knows of a machine besides what is stored; gone with the controller. Times are of the monotonic clock. */
interface Memory {
  readonly silentSince: number | undefined;
  readonly deaths: readonly number[];
  /** It was brought the enrollment that its object has. */
  readonly knowsControllers: boolean;
}

const nothingKnown: Memory = { silentSince: undefined, deaths: [], knowsControllers: false };

const retryFailureMs = 15_000;
const retryPendingMs = 1_000;
const retryUnreachableMs = 15_000;

/** Converges one machine: creates, starts, stops, destroys it as its object says. Key: machine id. */
function createMachineReconciler(deps: MachineReconcilerDeps): Reconciler {
  const memories = new Map<string, Memory>();
  const startedAt = deps.clock.monotonicMs();

  async function observe(machine: MachineObject, signal: AbortSignal): Promise<ObservedMachine> {
    const { id } = machine.metadata;
    const now = deps.clock.now();
    const facts = await deps.provider.get(id, signal);
    const session = deps.session(id);
    const connectedMs = session && Math.max(0, now - session.connectedAt);
    const memory = memories.get(id) ?? nothingKnown;
    const at = deps.clock.monotonicMs();
    const isSilent = facts?.state === "running" && session === undefined;
    const silentSince = isSilent ? (memory.silentSince ?? at) : undefined;
    const died = isDead(machine, facts);
    const deaths = (died ? [...memory.deaths, at] : memory.deaths).filter((death) => at - death < deathsKeptMs);
    memories.set(id, { ...memory, silentSince, deaths });
    if (died) await writeStatus(id, "died", { reason: "The machine ended and is started again." }, deps, signal);
    const silentMs = silentSince === undefined ? 0 : at - silentSince;
    const deathsAgoMs = deaths.map((death) => at - death);
    const { knowsControllers } = memory;
    const atWorkMs = at - startedAt;
    return {
      facts,
      connectedMs,
      silentMs,
      deathsAgoMs,
      knowsControllers,
      now,
      atWorkMs,
      controllers: deps.controllers(),
      caFingerprint: deps.caFingerprint(),
    };
  }

  async function perform(step: MachineStep, machine: MachineObject, signal: AbortSignal): Promise<void> {
    const { id } = machine.metadata;
    const note = (knowsControllers: boolean) => {
      memories.set(id, { ...(memories.get(id) ?? nothingKnown), knowsControllers });
    };
    const tells = step.kind === "start" || step.kind === "enroll";
    if (tells) note(false);
    await performMachineStep(step, machine, deps, signal);
    if (tells) note(true);
  }

  /**
   * Resolves to the reason why a running machine with an owner cannot have its size; its other steps are performed all
   * the same.
   */
  async function performAll(
    steps: readonly MachineStep[],
    machine: MachineObject,
    { facts }: ObservedMachine,
    signal: AbortSignal,
  ): Promise<string> {
    const goesOn = facts?.state === "running" && machine.status.state === "running" && machine.spec.owner !== null;
    let sizeProblem = "";
    for (const step of steps) {
      const isSize = step.kind === "growDisk" || step.kind === "resize";
      try {
        await perform(step, machine, signal);
      } catch (error) {
        const reason = goesOn && isSize ? failureReason(error) : undefined;
        if (reason === undefined) throw error;
        deps.log.warn("machine keeps its size", { machine: machine.metadata.id, reason });
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
        const { steps, lookAgainMs } = planMachine(machine, observed);
        const sizeProblem = await performAll(steps, machine, observed, signal);
        if (steps.some(({ kind }) => kind === "forget")) return settled;
        if (steps.some(({ kind }) => kind === "place")) return again(0, "placed");
        await writeFound(machine, observed, sizeProblem, deps, signal);
        if (sizeProblem !== "") return again(retryFailureMs, sizeProblem);
        return lookAgainMs === null ? settled : again(lookAgainMs, "restart or silence");
      } catch (error) {
        return await settleFailure(machine, error, deps, signal);
      }
    },
  };
}

/** The reconciler with its keys: every machine object, hinted at by the store, the provider and the fleet. */
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
    // A stop in order, and some.
    deadlineMs: stopGraceMs + 60_000,
  };
}

function isDead(machine: MachineObject, facts: MachineFacts | undefined): boolean {
  const { metadata, spec } = machine;
  const shouldRun = spec.power === "on" && metadata.deletionRequestedAt === undefined;
  return shouldRun && isUp(machine) && facts?.state === "stopped";
}

/** What the provider has after the steps. */
async function writeFound(
  { metadata: { id, generation }, spec }: MachineObject,
  { deathsAgoMs: deaths, connectedMs = 0 }: ObservedMachine,
  sizeProblem: string,
  deps: MachineReconcilerDeps,
  signal: AbortSignal,
): Promise<void> {
  const facts = await deps.provider.get(id, signal);
  if (facts === undefined) return;
  const waits = spec.owner === null && connectedMs > toldWithinMs;
  const running: MachineEvent = waits ? "foundWaiting" : "foundRunning";
  const found: MachineEvent = facts.state === "running" ? running : "foundStopped";
  const isRestless = deaths.length >= deathsMax;
  const reason = isRestless ? `The machine ended ${deaths.length} times within ten minutes.` : "";
  // Waiting for its next start, it is neither found stopped nor well.
  const rests = deaths.length > 0 && facts.state === "stopped" && spec.power === "on";
  const event = isRestless ? "failed" : rests ? undefined : found;
  const { vcpu, memoryBytes, rootBytes = spec.rootBytes } = facts.plan;
  const size = { vcpu, memoryBytes, rootBytes, diskBytes: facts.diskBytes };
  const change: Partial<MachineStatus> = { size, sizeProblem, ...(rests && !isRestless ? {} : { reason }) };
  const options = { ofGeneration: generation };
  await writeStatus(id, event, { ...change, ...addressesOf(facts) }, deps, signal, options);
}

/** A failure with a reason is shown and tried again; anything else is the queue's to retry and to log. */
async function settleFailure(
  machine: MachineObject,
  error: unknown,
  deps: MachineReconcilerDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const { id } = machine.metadata;
  if (error instanceof ComputePending) {
    await writeStatus(id, "createDelayed", { reason: error.message }, deps, signal);
    return again(retryPendingMs, "the provider prepares");
  }
  if (error instanceof HostUnreachable) return settleSilence(machine, error, deps, signal);
  const reason = failureReason(error);
  if (reason === undefined) throw error;
  if (error instanceof Error && error.cause !== undefined) deps.log.warn("a host said more", { machine: id, error });
  await writeStatus(id, "failed", { reason }, deps, signal);
  return again(retryFailureMs, reason);
}

/** In words for its owner; undefined for what is no verdict of the provider's. */
function failureReason(error: unknown): string | undefined {
  if (error instanceof ComputePending || error instanceof HostUnreachable) return undefined;
  if (error instanceof ComputeFailure) return error.message;
  return isDiskFull(error) ? "The host's disk is full." : undefined;
}

/**
 * Its host did not answer, so nothing is known of the machine but what its agent says, and nothing is made of it elsewhere.
 * One failed call is nothing yet: what counts is that the host is found unreachable.
 */
async function settleSilence(
  { metadata, spec, status }: MachineObject,
  { message: reason }: HostUnreachable,
  deps: MachineReconcilerDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const { id } = metadata;
  const isSilent = deps.hosts.get(spec.hostId ?? "")?.object.status.state !== "ready";
  if (metadata.deletionRequestedAt !== undefined) await writeStatus(id, "destroyOrdered", { reason }, deps, signal);
  else if (deps.session(id) !== undefined)
    await writeStatus(id, status.state === "unreachable" ? "foundRunning" : undefined, { reason }, deps, signal);
  else if (isSilent) await writeStatus(id, "hostFellSilent", { reason }, deps, signal);
  return again(isSilent ? retryUnreachableMs : retryPendingMs, reason);
}

/** Was it on a host that is gone for good, by an operator's word? */
function isLost({ spec }: MachineObject, { hosts }: MachineReconcilerDeps): boolean {
  return spec.hostId !== null && (hosts.get(spec.hostId)?.object.spec.destroyedAt ?? null) !== null;
}

/**
 * Of a lost machine only the object is left. A service's stays, so that no empty machine is made in its place unasked.
 */
async function settleLost(machine: MachineObject, deps: MachineReconcilerDeps, signal: AbortSignal): Promise<Outcome> {
  const { metadata, spec } = machine;
  if (spec.owner === null || metadata.deletionRequestedAt !== undefined) {
    await performMachineStep({ kind: "forget" }, machine, deps, signal);
    return settled;
  }
  const reason = `Host ${spec.hostId} was destroyed, and what was on it is lost. Delete the service.`;
  await writeStatus(metadata.id, "failed", { reason, enrollment: null }, deps, signal);
  return settled;
}

/** Wakes all machines of a host whose state changed, and at any change those for which there was no host. */
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

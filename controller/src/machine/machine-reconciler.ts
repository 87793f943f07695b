import { ComputeFailure, ComputePending, HostUnreachable, isDiskFull } from "../compute/compute-failure.ts";
import type { MachineFacts } from "../compute/compute-provider.ts";
import { again, type Outcome, type Reconciler, settled } from "../runtime/reconciler.ts";
import type { Reconciled } from "../runtime/runner.ts";
import type { Collection } from "../store/collection.ts";
import type { Resource } from "../store/resource.ts";
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
  /** It was brought the enrolment that its object has. */
  readonly isTold: boolean;
}

const nothingKnown: Memory = { silentSince: undefined, deaths: [], isTold: false };

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
    const { isTold } = memory;
    const atWorkMs = at - startedAt;
    return { facts, connectedMs, silentMs, deathsAgoMs, isTold, now, atWorkMs, controllers: deps.controllers() };
  }

  async function perform(step: MachineStep, machine: MachineObject, signal: AbortSignal): Promise<void> {
    const { id } = machine.metadata;
    const note = (isTold: boolean) => void memories.set(id, { ...(memories.get(id) ?? nothingKnown), isTold });
    const tells = step.kind === "start" || step.kind === "enroll";
    if (tells) note(false);
    await performMachineStep(step, machine, deps, signal);
    if (tells) note(true);
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
        for (const step of steps) await perform(step, machine, signal);
        if (steps.some(({ kind }) => kind === "forget")) return settled;
        if (steps.some(({ kind }) => kind === "place")) return again(0, "placed");
        await writeFound(machine, observed, deps, signal);
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
): Reconciled {
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
  const change: Partial<MachineStatus> = rests && !isRestless ? {} : { reason };
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
  const reason =
    error instanceof ComputeFailure ? error.message : isDiskFull(error) ? "The host's disk is full." : undefined;
  if (reason === undefined) throw error;
  if (error instanceof Error && error.cause !== undefined) deps.log.warn("a host said more", { machine: id, error });
  await writeStatus(id, "failed", { reason }, deps, signal);
  return again(retryFailureMs, reason);
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

/** Of a lost machine only the object is left. One that is somebody's stays, so that none is made in its place unasked. */
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

import { setTimeout as delay } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import type { ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import { status as Code } from "@grpc/grpc-js";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { Membership } from "../runtime/membership.ts";
import type { InstallationAuthority } from "../pki/create-authority.ts";
import { createRenewedIdentity } from "../pki/renewed-identity.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { Collection } from "../store/collection.ts";
import type { Lease, Store } from "../store/store.ts";
import { type MtlsListener, createMtlsListener } from "./mtls-listener.ts";
import { createControllerAddresses } from "./controller-addresses.ts";
import { createDurableTasks } from "./durable-tasks.ts";
import type { Fleet, SessionFacts } from "./fleet.ts";
import { type FleetLimits, usualLimits } from "./fleet-limits.ts";
import { addFleetRpcs } from "./fleet-rpcs.ts";
import { listenerNames } from "./listener-names.ts";
import { createMachineCertificates } from "./machine-certificates.ts";
import { createObservations } from "./observations.ts";
import { createPace } from "./pace.ts";
import type { PayloadStore } from "./payload-store.ts";
import { createPeerCalls } from "./peer-calls.ts";
import { createPresence } from "./presence.ts";
import { probeTransfer } from "./probe-transfer.ts";
import { RpcFailure } from "./rpc-status.ts";
import { type Session, unreachable } from "./session.ts";
import { createSessions } from "./sessions.ts";
import { acknowledgeSamples, type SampleSink } from "./sample-sink.ts";
import { createStanding } from "./standing.ts";
import { createStoredMessages } from "./stored-messages.ts";
import { createTaskDispatch, quickPrefix } from "./task-dispatch.ts";
import { taskMessage } from "./task-message.ts";
import type { TaskObject } from "./task-object.ts";
import { createTaskResults } from "./task-results.ts";
import { createSurplus } from "./surplus.ts";
import { createTaskUpkeep } from "./task-upkeep.ts";

export interface FleetDeps {
  /** This controller among the others; streams hang on its lease. */
  readonly membership: Membership;
  readonly installationId: string;
  readonly store: Store;
  readonly machines: Collection<MachineObject>;
  readonly tasks: Collection<TaskObject>;
  readonly authority: InstallationAuthority;
  readonly sealer: Sealer;
  readonly payloads: PayloadStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Where it listens besides. */
  readonly alsoListen?: readonly Endpoint[];
  /** host:port that agents and controllers dial; by default where it listens. */
  readonly advertise?: string;
  readonly limits?: Partial<FleetLimits>;
  /** True while the store may know less than the agents do, after a restore. Default: never. */
  readonly storeMayBeBehind?: () => boolean;
  /** Takes what machines were like; without it they keep their samples. */
  readonly samples?: SampleSink;
  /** Other services on the same listener, such as the zone's. */
  readonly services?: readonly { definition: ServiceDefinition; implementation: UntypedServiceImplementation }[];
}

/** The fleet with its listener, as main starts and stops it. */
export interface RunningFleet extends Fleet {
  readonly port: number;
  readonly advertise: string;
  /** Every agent stream, with who holds it. */
  sessions(): IterableIterator<[machineId: string, facts: SessionFacts]>;
  /** Streams held here. */
  readonly held: number;
  /** host:port of every controller's listener. */
  readonly controllers: readonly string[];
  probeTransfer(
    machineId: string,
    sizeBytes: number,
    signal?: AbortSignal,
  ): Promise<{ durationMs: number; sha256: string }>;
  close(): Promise<void>;
}

/** Streams whose presence is written anew together; the store makes two transactions of these. */
const resumedAtOnce = 128;

/** Serves agents as soon as it resolves, and holds their streams while the membership has a lease. */
export async function createFleet(deps: FleetDeps): Promise<RunningFleet> {
  const { membership, installationId, store, machines, tasks, authority, sealer, payloads, clock, log } = deps;
  const limits: FleetLimits = { ...usualLimits, ...deps.limits };
  await Promise.all([machines.ready, tasks.ready]);

  const subscribers = new Set<(machineId: string) => void>();
  const changed = (machineId: string) => {
    for (const subscriber of subscribers) subscriber(machineId);
  };
  const controllerId = membership.id;

  const identity = await createRenewedIdentity({
    authority,
    identity: { kind: "controller", id: controllerId },
    ...listenerNames(deps.host, deps.advertise),
    clock,
    log,
  });
  const trustBundle = () => authority.trustBundle;
  const { messageBytes } = limits;
  const { host, alsoListen = [] } = deps;
  const listener = createMtlsListener({
    host,
    port: deps.port,
    alsoListen,
    identity,
    trustBundle,
    messageBytes,
    log,
  });
  const standing = createStanding({
    membership,
    graceMs: limits.withoutLeaseMs,
    onLost() {
      log.warn("agent streams are kept without a lease", { count: sessions.size });
      sessions.greetAll();
    },
    onRegained: (lease) => void resumeAll(lease),
    onEnd: (reason) => sessions.releaseAll(reason),
  });
  const acting = () => standing.lease !== undefined;
  const controllers = createControllerAddresses(membership, () => sessions.greetAll());
  const peers = createPeerCalls({ installationId, identity, trustBundle, log });
  const certificates = createMachineCertificates({
    installationId,
    store,
    machines,
    authority,
    sealer,
    clock,
    log,
    storeMayBeBehind: deps.storeMayBeBehind ?? (() => false),
  });
  const observations = createObservations({ store, clock, log, onChange: changed });
  const messages = createStoredMessages(sealer, payloads, limits.inlineBytes);
  const results = createTaskResults(messages, log, (task) => changed(task.spec.machineId));
  const presence = createPresence({
    store,
    membership,
    log,
    onChange(machineId, taken) {
      const here = sessions.get(machineId);
      if (here !== undefined && taken !== undefined && here.presence !== 0n && taken > here.presence) {
        sessions.release(here, "a newer stream is elsewhere");
      }
      changed(machineId);
    },
  });
  const sessions = createSessions({
    controllerId,
    limits,
    clock,
    log,
    controllers: () => controllers.all,
    authorityGeneration: () => authority.generation,
    hasLease: acting,
    disconnect: (address) => listener.disconnect(address),
    events: {
      check,
      admit,
      opened(session) {
        dispatch.attach(session);
        // The presence key was told a moment ago; who came too early for the stream comes again.
        changed(session.machineId);
        certificates.used(session.peer).catch((error: unknown) => {
          log.warn("older certificate not ended", { machine: session.machineId, error: String(error) });
        });
      },
      observation: (session, instance) => observations.report(session.machineId, instance, session.hello?.bootId ?? ""),
      progress(session, progress) {
        results.progressed(progress);
        dispatch.progress(session, progress);
        changed(session.machineId);
      },
      result: (session, result) => void dispatch.result(session, result),
      samples(session, batch) {
        if (deps.samples !== undefined) void acknowledgeSamples(deps.samples, session, batch);
      },
      closed: (session) => presence.leave(session),
    },
  });
  const authorityChanges = authority.subscribe(() => sessions.greetAll());
  const durable = createDurableTasks({
    store,
    tasks,
    messages,
    payloads,
    clock,
    log,
    keptMs: limits.taskKeptMs,
    onChange(taskId, task) {
      dispatch.changed(taskId, task);
      if (task === undefined) results.forget(taskId);
      else changed(task.spec.machineId);
    },
  });
  const sessionOf = (machineId: string) => (acting() ? sessions.get(machineId) : undefined);
  const dispatch = createTaskDispatch({ tasks: durable, log, sessionOf, cut: sessions.cut });

  async function check(session: Session) {
    const held = standing.lease;
    if (held === undefined) throw new RpcFailure(Code.UNAVAILABLE, "this controller has no lease");
    const machine = await certificates.check(session.peer);
    session.checkedAt = machine.modRevision;
    return held;
  }

  async function admit(session: Session): Promise<void> {
    const held = await check(session);
    const newest = await presence.enter(session, held);
    if (!newest) throw new RpcFailure(Code.ABORTED, "a newer stream is elsewhere");
    // The key went with that lease, or will.
    if (standing.lease !== held) throw new RpcFailure(Code.UNAVAILABLE, "the lease ended meanwhile");
  }

  /** A few at a time: what waits for too long is refused by the store. */
  async function resumeAll(lease: Lease): Promise<void> {
    const kept = [...sessions.values()];
    sessions.greetAll();
    while (kept.length > 0 && standing.lease === lease) {
      await Promise.all(kept.splice(0, resumedAtOnce).map((session) => resume(session, lease)));
    }
  }

  async function resume(session: Session, lease: Lease): Promise<void> {
    try {
      if (session.closed) return;
      const isHere = await presence.renew(session, lease);
      if (!isHere) sessions.release(session, "a newer stream is elsewhere");
      else if (session.closed) presence.leave(session);
      else dispatch.resume(session);
    } catch (error) {
      // With that lease gone as well, the next one has its turn.
      if (standing.lease === lease) sessions.release(session, `not taken again: ${String(error)}`);
    }
  }

  const machineChanges = machines.subscribe((machineId) => {
    const session = sessions.get(machineId);
    if (session !== undefined && certificates.isRevoked(machineId, session.peer.serial, session.checkedAt)) {
      sessions.cut(session, Code.PERMISSION_DENIED, "machine deleted or certificate superseded");
    }
    const machine = machines.get(machineId)?.object;
    if (machine === undefined) observations.forget(machineId);
    if (machine === undefined || machine.metadata.deletionRequestedAt !== undefined) void upkeep.failOf(machineId);
  });

  const upkeep = createTaskUpkeep({
    durable,
    machines,
    clock,
    log,
    tickMs: limits.tickMs,
    acting,
    alsoSweep: () => presence.sweep((machineId) => sessions.get(machineId) !== undefined),
  });

  const surplus = createSurplus({
    membership,
    entries: presence.entries,
    sessions: sessions.values,
    ...limits.surplus,
  });

  const { payloadBytes, payloadBytesPerSecond } = limits;
  const pace = createPace(payloadBytesPerSecond, clock.monotonicMs);
  addFleetRpcs(listener, {
    installationId,
    authority,
    certificates,
    payloads,
    payloadBytes,
    pace,
    sessions,
    sessionOf,
    log,
  });
  for (const { definition, implementation } of deps.services ?? []) listener.addService(definition, implementation);
  const port = await listener.listen();
  const advertise = deps.advertise ?? `${deps.host}:${port}`;
  // Until the others know the address, they cannot pass tasks on to this controller.
  void membership.announce(advertise);

  const fleet: RunningFleet = {
    port,
    advertise,
    async run(machineId, request, timeoutMs, signal) {
      if (!acting()) throw unreachable("This controller has no lease.");
      const id = `${quickPrefix}${randomUUID()}`;
      const task = taskMessage(id, request, clock.now() + timeoutMs, TaskClass.QUICK);
      const here = sessions.get(machineId);
      if (here !== undefined) return here.run(task, timeoutMs, signal);
      const holder = presence.get(machineId)?.controllerId;
      const address = holder === undefined || holder === controllerId ? undefined : controllers.of(holder);
      if (address === undefined) throw unreachable("The machine's agent is not connected.");
      return peers.run(address, machineId, task, timeoutMs, signal);
    },
    submit: (machineId, taskId, request, signal) => durable.submit(machineId, taskId, request, signal),
    task(taskId) {
      const task = durable.get(taskId);
      return task && results.stateOf(task);
    },
    cancel: (taskId, signal) => durable.requestCancel(taskId, signal),
    session: (machineId) => presence.get(machineId),
    observation: (machineId) => observations.get(machineId),
    subscribe(onChange) {
      subscribers.add(onChange);
      return { close: () => void subscribers.delete(onChange) };
    },
    sessions: () => presence.entries(),
    get held() {
      return sessions.size;
    },
    get controllers() {
      return controllers.all;
    },
    probeTransfer: (machineId, sizeBytes, signal) =>
      probeTransfer({ fleet, payloads, pace }, machineId, sizeBytes, signal),
    async close() {
      surplus.close();
      upkeep.close();
      standing.close();
      sessions.releaseAll("the controller stops");
      machineChanges.close();
      authorityChanges.close();
      dispatch.close();
      durable.close();
      await closeGently(listener);
      sessions.close();
      for (const part of [peers, observations, presence, controllers, identity]) part.close();
    },
  };

  return fleet;
}

/** A Goodbye that was just written needs a moment to leave. */
async function closeGently(listener: MtlsListener): Promise<void> {
  await delay(50);
  await listener.close();
}

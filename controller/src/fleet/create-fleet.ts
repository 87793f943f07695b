import { setTimeout as delay } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import { status as Code } from "@grpc/grpc-js";
import { TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { listenerNames } from "../listener/listener-names.ts";
import { type MtlsListener, createMtlsListener } from "../listener/mtls-listener.ts";
import { RpcFailure } from "../listener/rpc-status.ts";
import { createRenewedIdentity } from "../pki/renewed-identity.ts";
import { createControllerAddresses } from "../runtime/controller-addresses.ts";
import { createMachineCertificates } from "./certificate/machine-certificates.ts";
import { type FleetLimits, usualLimits } from "./fleet-limits.ts";
import { addFleetRpcs } from "./fleet-rpcs.ts";
import { createKeptStreams } from "./kept-streams.ts";
import { createPace } from "./payload/pace.ts";
import { probeTransfer } from "./probe-transfer.ts";
import type { FleetDeps, RunningFleet } from "./running-fleet.ts";
import { createObservations } from "./session/observations.ts";
import { createPeerCalls, type PeerCalls } from "./session/peer-calls.ts";
import { createPresence } from "./session/presence.ts";
import { acknowledgeSamples } from "./session/sample-sink.ts";
import { type Session, unreachable } from "./session/session.ts";
import { createSessions } from "./session/sessions.ts";
import { createStanding } from "./session/standing.ts";
import { createSurplus } from "./session/surplus.ts";
import { createDurableTasks } from "./task/durable-tasks.ts";
import { createQuickTasks } from "./task/quick-tasks.ts";
import { createStoredMessages } from "./task/stored-messages.ts";
import { createTaskDispatch, quickPrefix } from "./task/task-dispatch.ts";
import { taskMessage } from "./task/task-message.ts";
import { createTaskResults } from "./task/task-results.ts";
import { createTaskUpkeep } from "./task/task-upkeep.ts";

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
    lookMs: limits.withoutLeaseMs / 4,
    othersMayAct: () => mayAnyAct(controllers.others, peers, limits.withoutLeaseMs / 4),
    monotonicMs: clock.monotonicMs,
    onLost() {
      log.warn("agent streams are kept without a lease", { count: sessions.size });
      sessions.greetAll();
    },
    onRegained(lease) {
      sessions.greetAll();
      void keptStreams.takeAll(lease);
    },
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
  const quickTasks = createQuickTasks({ limits: limits.quickTasks, sessionOf });
  const dispatch = createTaskDispatch({ tasks: durable, log, sessionOf, cut: sessions.cut });

  const keptStreams = createKeptStreams({ sessions, presence, dispatch, lease: () => standing.lease, log });

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
    quickTasks,
    hasLease: acting,
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
      if (sessions.get(machineId) !== undefined) return quickTasks.run(machineId, task, timeoutMs, signal);
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

/** Who does not answer may have a lease. */
async function mayAnyAct(addresses: readonly string[], peers: PeerCalls, timeoutMs: number): Promise<boolean> {
  const answers = addresses.map((address) => peers.hasLease(address, timeoutMs).catch(() => true));
  return (await Promise.all(answers)).includes(true);
}

/** A Goodbye that was just written needs a moment to leave. */
async function closeGently(listener: MtlsListener): Promise<void> {
  await delay(50);
  await listener.close();
}

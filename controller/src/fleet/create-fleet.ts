import { createTokenBuckets } from "@holdfast/common/token-bucket.ts";
import { setTimeout as delay } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import { status as Code } from "@grpc/grpc-js";
import { inBackground } from "@holdfast/common/background.ts";
import { TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createBootClock } from "@holdfast/common/boot-clock.ts";
import { listenerNames } from "@holdfast/mtls/listener-names.ts";
import { type MtlsListener, createMtlsListener } from "@holdfast/mtls/mtls-listener.ts";
import { peerOf } from "@holdfast/mtls/peer.ts";
import { RpcFailure } from "@holdfast/mtls/rpc-status.ts";
import { createRenewedIdentity } from "@holdfast/mtls/renewed-identity.ts";
import { createControllerAddresses } from "#kernel/runtime/controller-addresses.ts";
import { createMachineCertificates } from "./certificate/machine-certificates.ts";
import { type FleetLimits, usualLimits } from "./fleet-limits.ts";
import { addFleetRpcs } from "./fleet-rpcs.ts";
import { createKeptStreams } from "./kept-streams.ts";
import { NotAsked } from "./not-asked.ts";
import { createPace } from "./payload/pace.ts";
import { probeTransfer } from "./probe-transfer.ts";
import type { FleetDeps, RunningFleet } from "./running-fleet.ts";
import { boundedProgress } from "./session/bounded-frames.ts";
import { createObservations } from "./session/observations.ts";
import { createPeerCalls, type PeerCalls } from "./session/peer-calls.ts";
import { createPresence } from "./session/presence.ts";
import { acknowledgeSamples } from "./session/sample-sink.ts";
import { type Session, unreachable } from "./session/session.ts";
import { createRevocation } from "./session/revocation.ts";
import { createRights } from "./session/rights.ts";
import { createSilenceElsewhere } from "./session/silence-elsewhere.ts";
import { createSessions } from "./session/sessions.ts";
import { createStreamLease } from "./session/stream-lease.ts";
import { createRebalancer } from "./session/rebalancer.ts";
import { createDurableTasks } from "./task/durable-tasks.ts";
import { createQuickTasks } from "./task/quick-tasks.ts";
import { createStoredMessages } from "./task/stored-messages.ts";
import { createTaskDispatch, quickPrefix } from "./task/task-dispatch.ts";
import { sentNow, taskMessage } from "./task/task-message.ts";
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
    callsAtOnce: (call) => limits.callsAtOnce[peerOf(call, installationId)?.identity.kind ?? "machine"],
    connections: limits.connections,
    strangerMs: limits.strangerMs,
    log,
  });
  const streamLease = createStreamLease({
    membership,
    graceMs: limits.withoutLeaseMs,
    lookMs: limits.withoutLeaseMs / 4,
    othersMayAct: () => mayAnyAct(controllers.others, peers, limits.withoutLeaseMs / 4),
    monotonicMs: clock.monotonicMs,
    log,
    onLost() {
      log.warn("agent streams are kept without a lease", { count: sessions.size });
      sessions.greetAll();
    },
    onRegained(lease) {
      sessions.greetAll();
      inBackground(log, "streams under a new lease", keptStreams.takeAll(lease));
    },
    onEnd: (reason) => sessions.releaseAll(reason),
  });
  const acting = () => streamLease.lease !== undefined;
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
  const bootMs = createBootClock();
  const rights = createRights({
    rules: deps.rightRules,
    revision: () => store.revision(),
    hasLease: acting,
    bootMs,
    onChange: changed,
    log,
  });
  const revocation = createRevocation({ membership, peers, rights, bootMs });
  const silence = createSilenceElsewhere({ membership, peers });
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
        rights.opened(session.machineId);
        dispatch.attach(session);
        // The presence key was announced a moment ago; a reconcile that ran before the stream was open runs again.
        changed(session.machineId);
        certificates.used(session.peer).catch((error: unknown) => {
          log.warn("older certificate not ended", { machine: session.machineId, error: String(error) });
        });
      },
      observation: (session, instance) => observations.report(session.machineId, instance, session.hello?.bootId ?? ""),
      progress(session, progress) {
        const bounded = boundedProgress(progress);
        if (!dispatch.progress(session, bounded)) return;
        results.progressed(bounded);
        changed(session.machineId);
      },
      result: (session, result) => inBackground(log, "result of a task", dispatch.result(session, result)),
      samples(session, batch) {
        if (deps.samples !== undefined)
          inBackground(log, "samples of an agent", acknowledgeSamples(deps.samples, session, batch));
      },
      right: (session, request) => inBackground(log, "request for a right", rights.request(session, request)),
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

  const keptStreams = createKeptStreams({ sessions, presence, dispatch, lease: () => streamLease.lease, log });

  async function check(session: Session) {
    const held = streamLease.lease;
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
    if (streamLease.lease !== held) throw new RpcFailure(Code.UNAVAILABLE, "the lease ended meanwhile");
  }

  const machineChanges = machines.subscribe((machineId) => {
    const session = sessions.get(machineId);
    if (session !== undefined && certificates.isRevoked(machineId, session.peer.serial, session.checkedAt)) {
      sessions.cut(session, Code.PERMISSION_DENIED, "machine deleted or certificate superseded");
    }
    const machine = machines.get(machineId)?.object;
    if (machine === undefined) observations.forget(machineId);
    if (machine === undefined || machine.metadata.deletionRequestedAt !== undefined)
      inBackground(log, "tasks of a machine that goes", upkeep.failOf(machineId));
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

  const rebalancer = createRebalancer({
    membership,
    entries: presence.entries,
    sessions: sessions.values,
    ...limits.rebalance,
  });

  const { payloadBytes, payloadBytesPerSecond, heldPayloads } = limits;
  const pace = createPace(payloadBytesPerSecond, clock.monotonicMs, log);
  addFleetRpcs(listener, {
    installationId,
    authority,
    certificates,
    payloads,
    payloadBytes,
    heldPayloads,
    pace,
    payloadRates: createTokenBuckets(limits.payloadStreams, clock.monotonicMs),
    certificateRates: createTokenBuckets(limits.certificates, clock.monotonicMs),
    enrollmentRates: createTokenBuckets(limits.failedEnrollments, clock.monotonicMs),
    sessions,
    quickTasks,
    sessionOf,
    hasLease: acting,
    rights,
    urlGrants: deps.urlGrants,
    log,
  });
  for (const { definition, implementation } of deps.services ?? []) listener.addService(definition, implementation);
  const port = await listener.listen();
  const advertise = deps.advertise ?? `${deps.host}:${port}`;
  // Until the others know the address, they cannot pass tasks on to this controller.
  inBackground(log, "announcement", membership.announce(advertise));

  const fleet: RunningFleet = {
    port,
    advertise,
    async run(machineId, request, timeoutMs, signal) {
      if (!acting()) throw new NotAsked("This controller has no lease. Ask again.");
      const id = `${quickPrefix}${randomUUID()}`;
      const now = clock.now();
      const task = sentNow(taskMessage(id, request, now + timeoutMs, TaskClass.QUICK), now);
      if (sessions.get(machineId) !== undefined) return quickTasks.run(machineId, task, timeoutMs, signal);
      const holder = presence.get(machineId)?.controllerId;
      if (holder === undefined || holder === controllerId) throw unreachable("The machine's agent is not connected.");
      const address = controllers.of(holder);
      if (address === undefined) throw new NotAsked("The controller that holds the machine's stream is not known.");
      return peers.run(address, machineId, task, timeoutMs, signal);
    },
    submit: (machineId, taskId, request, signal) => durable.submit(machineId, taskId, request, signal),
    task(taskId) {
      const task = durable.get(taskId);
      return task && results.stateOf(task);
    },
    cancel: (taskId, signal) => durable.requestCancel(taskId, signal),
    session: (machineId) => presence.get(machineId),
    heardRight: rights.heard,
    silentElsewhere(machineId) {
      const holder = presence.get(machineId)?.controllerId;
      return holder === undefined ? undefined : silence.heard(holder, machineId);
    },
    revokeRight: (machineId, term, signal) => revocation.revoke(machineId, BigInt(term), signal),
    observation: (machineId) => observations.get(machineId),
    subscribe(onChange) {
      subscribers.add(onChange);
      return {
        close: () => {
          subscribers.delete(onChange);
        },
      };
    },
    sessions: () => presence.entries(),
    get held() {
      return sessions.size;
    },
    rightsAnswered: rights.answered,
    get controllers() {
      return controllers.all;
    },
    probeTransfer: (machineId, sizeBytes, signal) =>
      probeTransfer({ fleet, payloads, pace }, machineId, sizeBytes, signal),
    async close() {
      rebalancer.close();
      upkeep.close();
      streamLease.close();
      sessions.releaseAll("the controller stops");
      machineChanges.close();
      authorityChanges.close();
      dispatch.close();
      durable.close();
      await closeGently(listener);
      sessions.close();
      for (const part of [revocation, silence, peers, observations, presence, controllers, identity]) part.close();
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

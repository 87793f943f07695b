import { createTokenBuckets } from "@holdfast/common/concurrency/token-buckets.ts";
import { setTimeout as delay } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import { status as Code } from "@grpc/grpc-js";
import { inBackground } from "@holdfast/common/background.ts";
import { TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createBootClock } from "@holdfast/common/boot-clock.ts";
import { createMtlsListener, listenerNames, type MtlsListener } from "@holdfast/mtls/mtls-listener.ts";
import { peerOf } from "@holdfast/mtls/peer.ts";
import { RpcFailure } from "@holdfast/mtls/rpc-handlers.ts";
import { createRenewedIdentity } from "@holdfast/mtls/renewed-identity.ts";
import { createControllerAddresses } from "#kernel/runtime/controller-addresses.ts";
import { createMachineCertificates } from "./certificate/machine-certificates.ts";
import { type FleetLimits, defaultLimits } from "./fleet-limits.ts";
import { addFleetRpcs } from "./fleet-rpcs.ts";
import { createStreamReclaim } from "./stream-reclaim.ts";
import { TaskNotSent } from "./task-not-sent.ts";
import { createPayloadRateLimit } from "./payload/payload-rate-limit.ts";
import { probeTransfer } from "./probe-transfer.ts";
import type { FleetDeps, RunningFleet } from "./running-fleet.ts";
import { boundedProgress } from "./session/bounded-frames.ts";
import { createObservations } from "./session/observations.ts";
import { createControllerCalls, type ControllerCalls } from "./session/controller-calls.ts";
import { createPresence } from "./session/presence.ts";
import { acknowledgeSamples } from "./session/sample-sink.ts";
import { type AgentSession, unreachable } from "./session/session.ts";
import { createRevocation } from "./session/revocation.ts";
import { createPrimaryLeases } from "./session/primary-leases.ts";
import { listControllerReconcilers, reconcilerMessages } from "./session/controller-reconcilers.ts";
import { createControllerLeaseReports } from "./session/controller-lease-reports.ts";
import { createSessions } from "./session/sessions.ts";
import { createStreamLease } from "./session/stream-lease.ts";
import { createRebalancer } from "./session/rebalancer.ts";
import { createDurableTasks } from "./task/durable-tasks.ts";
import { createQuickTasks } from "./task/quick-tasks.ts";
import { createStoredMessages } from "./task/stored-messages.ts";
import { createTaskDispatch, quickPrefix } from "./task/task-dispatch.ts";
import { sentNow, taskMessage } from "./task/task.ts";
import { createTaskResults } from "./task/task-results.ts";
import { createTaskCleanup } from "./task/task-cleanup.ts";

/**
 * The fleet of one controller: its listener for agents, and everything that uses their streams.
 *
 * Every agent dials one controller and keeps one bidirectional stream (`session/`). The controller that has a machine's
 * stream writes a presence key under its etcd lease (`session/presence.ts`), so every controller can find the stream of
 * each agent. Work for an agent is a task (`task/`): a durable task is an object in etcd, delivered at least once by
 * the controller that has the stream; a quick task is in memory only and is sent to that controller by a call
 * (`session/controller-calls.ts`). Agents report observations, samples and task results, and request primary leases
 * (`session/primary-leases.ts`). Data that is too large for a frame is sent through the object store (`payload/`).
 *
 * A controller without a lease responds to no request and delivers no task, but retains its streams: under its next
 * lease it writes their presence keys again (`stream-reclaim.ts`). If another controller can act, and this one has had
 * no lease for `leaseGraceMs`, it ends its streams, and the agents connect to the others (`session/stream-lease.ts`).
 *
 * Agents are served once the promise resolves.
 */
export async function createFleet(deps: FleetDeps): Promise<RunningFleet> {
  const { controllerRegistry, installationId, store, machines, tasks, authority, sealer, payloads, clock, log } = deps;
  const limits: FleetLimits = { ...defaultLimits, ...deps.limits };
  await Promise.all([machines.ready, tasks.ready]);

  const subscribers = new Set<(machineId: string) => void>();
  const notifyChanged = (machineId: string) => {
    for (const subscriber of subscribers) subscriber(machineId);
  };
  const controllerId = controllerRegistry.id;

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
    maxConcurrentCalls: (call) => limits.maxConcurrentCalls[peerOf(call, installationId)?.identity.kind ?? "machine"],
    connections: limits.connections,
    unauthenticatedMs: limits.unauthenticatedMs,
    log,
  });
  const streamLease = createStreamLease({
    controllerRegistry,
    graceMs: limits.leaseGraceMs,
    checkIntervalMs: limits.leaseGraceMs / 4,
    othersMayAct: () => mayAnyHaveLease(controllers.others, controllerCalls, limits.leaseGraceMs / 4),
    monotonicMs: clock.monotonicMs,
    log,
    onLost() {
      log.warn("agent streams retained without a lease", { count: sessions.size });
      sessions.welcomeAll();
    },
    onRegained(lease) {
      sessions.welcomeAll();
      inBackground(log, "reclaim of agent streams", streamReclaim.reclaimAll(lease));
    },
    onEnd: (reason) => sessions.releaseAll(reason),
  });
  const canAct = () => streamLease.lease !== undefined;
  const controllers = createControllerAddresses(controllerRegistry, () => sessions.welcomeAll());
  const controllerCalls = createControllerCalls({ installationId, identity, trustBundle, log });
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
  const observations = createObservations({ store, clock, log, onChange: notifyChanged });
  const messages = createStoredMessages(sealer, payloads, limits.inlineBytes);
  const results = createTaskResults(messages, log, (task) => notifyChanged(task.spec.machineId));
  const presence = createPresence({
    store,
    controllerRegistry,
    log,
    onChange(machineId, taken) {
      const here = sessions.get(machineId);
      if (here !== undefined && taken !== undefined && here.presence !== 0n && taken > here.presence) {
        sessions.release(here, "the machine has a newer stream at another controller");
      }
      notifyChanged(machineId);
    },
  });
  const bootMs = createBootClock();
  const primaryLeases = createPrimaryLeases({
    rules: deps.primaryLeaseRules,
    revision: () => store.revision(),
    hasLease: canAct,
    bootMs,
    onChange: notifyChanged,
    log,
  });
  const revocation = createRevocation({ controllerRegistry, controllerCalls, primaryLeases, bootMs });
  const controllerLeaseReports = createControllerLeaseReports({ controllerRegistry, controllerCalls });
  const sessions = createSessions({
    controllerId,
    limits,
    clock,
    log,
    controllers: () => controllers.all,
    authorityGeneration: () => authority.generation,
    hasLease: canAct,
    disconnect: (address) => listener.disconnect(address),
    events: {
      check,
      admit,
      opened(session) {
        primaryLeases.opened(session.machineId);
        dispatch.attach(session);
        // The presence key was written before the stream was open: reconciles that ran in between run again.
        notifyChanged(session.machineId);
        certificates.used(session.peer).catch((error: unknown) => {
          log.warn("previous certificate not revoked", { machine: session.machineId, error: String(error) });
        });
      },
      observation: (session, instance) => observations.report(session.machineId, instance, session.hello?.bootId ?? ""),
      progress(session, progress) {
        const bounded = boundedProgress(progress);
        if (!dispatch.progress(session, bounded)) return;
        results.progressed(bounded);
        notifyChanged(session.machineId);
      },
      result: (session, result) => inBackground(log, "task result", dispatch.result(session, result)),
      samples(session, batch) {
        if (deps.samples !== undefined)
          inBackground(log, "agent samples", acknowledgeSamples(deps.samples, session, batch));
      },
      primaryLease: (session, request) =>
        inBackground(log, "primary lease request", primaryLeases.request(session, request)),
      closed: (session) => presence.leave(session),
    },
  });
  const authorityChanges = authority.subscribe(() => sessions.welcomeAll());
  const durable = createDurableTasks({
    store,
    tasks,
    messages,
    payloads,
    clock,
    log,
    retentionMs: limits.taskRetentionMs,
    onChange(taskId, task) {
      dispatch.changed(taskId, task);
      if (task === undefined) results.remove(taskId);
      else notifyChanged(task.spec.machineId);
    },
  });
  const sessionOf = (machineId: string) => (canAct() ? sessions.get(machineId) : undefined);
  const quickTasks = createQuickTasks({ limits: limits.quickTasks, sessionOf });
  const dispatch = createTaskDispatch({ tasks: durable, log, sessionOf, cut: sessions.cut });

  const streamReclaim = createStreamReclaim({ sessions, presence, dispatch, lease: () => streamLease.lease, log });

  async function check(session: AgentSession) {
    const lease = streamLease.lease;
    if (lease === undefined) throw new RpcFailure(Code.UNAVAILABLE, "this controller has no lease");
    const machine = await certificates.check(session.peer);
    session.checkedAt = machine.modRevision;
    return lease;
  }

  async function admit(session: AgentSession): Promise<void> {
    const lease = await check(session);
    const newest = await presence.enter(session, lease);
    if (!newest) throw new RpcFailure(Code.ABORTED, "the machine has a newer stream at another controller");
    // The presence key was written under the previous lease and ends with it.
    if (streamLease.lease !== lease)
      throw new RpcFailure(Code.UNAVAILABLE, "the lease ended during the admission of the stream");
  }

  const machineChanges = machines.subscribe((machineId) => {
    const session = sessions.get(machineId);
    if (session !== undefined && certificates.isRevoked(machineId, session.peer.serial, session.checkedAt)) {
      sessions.cut(session, Code.PERMISSION_DENIED, "machine deleted or certificate superseded");
    }
    const machine = machines.get(machineId)?.object;
    if (machine === undefined) observations.remove(machineId);
    if (machine === undefined || machine.metadata.deletionRequestedAt !== undefined)
      inBackground(log, "tasks of a deleted machine", taskCleanup.failTasksOf(machineId));
  });

  const taskCleanup = createTaskCleanup({
    durable,
    machines,
    clock,
    log,
    checkIntervalMs: limits.checkIntervalMs,
    canAct,
    alsoSweep: () => presence.sweep((machineId) => sessions.get(machineId) !== undefined),
  });

  const rebalancer = createRebalancer({
    controllerRegistry,
    entries: presence.entries,
    sessions: sessions.values,
    ...limits.rebalance,
  });

  const { payloadBytes, payloadBytesPerSecond, payloadQuota } = limits;
  const payloadRateLimit = createPayloadRateLimit(payloadBytesPerSecond, clock.monotonicMs, log);
  addFleetRpcs(listener, {
    installationId,
    authority,
    certificates,
    payloads,
    payloadBytes,
    payloadQuota,
    payloadRateLimit,
    payloadRates: createTokenBuckets(limits.payloadStreams, clock.monotonicMs),
    certificateRates: createTokenBuckets(limits.certificates, clock.monotonicMs),
    enrollmentRates: createTokenBuckets(limits.failedEnrollments, clock.monotonicMs),
    sessions,
    quickTasks,
    sessionOf,
    hasLease: canAct,
    primaryLeases,
    reconcilers: (failing) => reconcilerMessages(deps.reconcilers?.() ?? [], controllerId, failing),
    urlGrants: deps.urlGrants,
    log,
  });
  for (const { definition, implementation } of deps.services ?? []) listener.addService(definition, implementation);
  const port = await listener.listen();
  const advertise = deps.advertise ?? `${deps.host}:${port}`;
  // Other controllers send tasks to this one once they have its address.
  inBackground(log, "controller announcement", controllerRegistry.announce(advertise));

  const fleet: RunningFleet = {
    port,
    advertise,
    async run(machineId, request, timeoutMs, signal) {
      if (!canAct()) throw new TaskNotSent("This controller has no lease.");
      const id = `${quickPrefix}${randomUUID()}`;
      const now = clock.now();
      const task = sentNow(taskMessage(id, request, now + timeoutMs, TaskClass.QUICK), now);
      if (sessions.get(machineId) !== undefined) return quickTasks.run(machineId, task, timeoutMs, signal);
      const holder = presence.get(machineId)?.controllerId;
      if (holder === undefined || holder === controllerId) throw unreachable("The machine's agent is not connected.");
      const address = controllers.of(holder);
      if (address === undefined) throw new TaskNotSent("The controller with the machine's stream is not registered.");
      return controllerCalls.run(address, machineId, task, timeoutMs, signal);
    },
    submit: (machineId, taskId, request, signal) => durable.submit(machineId, taskId, request, signal),
    task(taskId) {
      const task = durable.get(taskId);
      return task && results.stateOf(task);
    },
    cancel: (taskId, signal) => durable.requestCancel(taskId, signal),
    session: (machineId) => presence.get(machineId),
    leaseReport: primaryLeases.report,
    controllerLeaseReport(machineId) {
      const holder = presence.get(machineId)?.controllerId;
      return holder === undefined ? undefined : controllerLeaseReports.report(holder, machineId);
    },
    revokePrimaryLease: (machineId, term, signal) => revocation.revoke(machineId, BigInt(term), signal),
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
    get streamCount() {
      return sessions.size;
    },
    primaryLeaseRequests: primaryLeases.outcomes,
    get controllers() {
      return controllers.all;
    },
    controllerReconcilers: (failing, signal) =>
      listControllerReconcilers({ controllerRegistry, controllerCalls }, failing, signal),
    probeTransfer: (machineId, sizeBytes, signal) =>
      probeTransfer({ fleet, payloads, payloadRateLimit }, machineId, sizeBytes, signal),
    async close() {
      rebalancer.close();
      taskCleanup.close();
      streamLease.close();
      sessions.releaseAll("the controller stops");
      machineChanges.close();
      authorityChanges.close();
      dispatch.close();
      durable.close();
      await closeAfterGoodbyes(listener);
      sessions.close();
      for (const part of [
        revocation,
        controllerLeaseReports,
        controllerCalls,
        observations,
        presence,
        controllers,
        identity,
      ])
        part.close();
    },
  };

  return fleet;
}

/** True if a controller at one of these addresses has a lease, or does not respond and so may have one. */
async function mayAnyHaveLease(
  addresses: readonly string[],
  controllerCalls: ControllerCalls,
  timeoutMs: number,
): Promise<boolean> {
  const responses = addresses.map((address) => controllerCalls.hasLease(address, timeoutMs).catch(() => true));
  return (await Promise.all(responses)).includes(true);
}

/** Waits until Goodbye frames that were just written are sent, then closes the listener. */
async function closeAfterGoodbyes(listener: MtlsListener): Promise<void> {
  await delay(50);
  await listener.close();
}

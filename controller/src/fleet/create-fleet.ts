import { isIP } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import type { ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import { status as Code } from "@grpc/grpc-js";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { InstallationAuthority } from "../pki/create-authority.ts";
import { createRenewedIdentity } from "../pki/renewed-identity.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { Collection } from "../store/collection.ts";
import type { Lease, Store } from "../store/store.ts";
import { agentDefinition, enrollmentDefinition, peerDefinition } from "./agent-definitions.ts";
import { type AgentListener, createAgentListener } from "./agent-listener.ts";
import { createCertificateRpcs } from "./certificate-rpcs.ts";
import { createDurableTasks } from "./durable-tasks.ts";
import type { Fleet, SessionFacts } from "./fleet.ts";
import { type FleetLimits, usualLimits } from "./fleet-limits.ts";
import { createMachineCertificates } from "./machine-certificates.ts";
import { createMembers } from "./members.ts";
import { createObservations } from "./observations.ts";
import { createPayloadRpcs } from "./payload-rpcs.ts";
import type { PayloadStore } from "./payload-store.ts";
import { createPeerCalls, createPeerRpcs } from "./peer-calls.ts";
import { createPresence } from "./presence.ts";
import { probeTransfer } from "./probe-transfer.ts";
import { logRefusal, requirePeer } from "./rpc-handlers.ts";
import { RpcFailure } from "./rpc-status.ts";
import { type Session, type SessionCall, unreachable } from "./session.ts";
import { createSessions } from "./sessions.ts";
import { createStoredMessages } from "./stored-messages.ts";
import { createTaskDispatch, quickPrefix } from "./task-dispatch.ts";
import { taskMessage } from "./task-message.ts";
import type { TaskObject } from "./task-object.ts";
import { createTaskResults } from "./task-results.ts";

export interface FleetDeps {
  readonly controllerId: string;
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
  /** host:port that agents and controllers dial; by default where it listens. */
  readonly advertise?: string;
  readonly limits?: Partial<FleetLimits>;
  /** True while the store may know less than the agents do, after a restore. Default: never. */
  readonly storeMayBeBehind?: () => boolean;
  /** Other services on the same listener, such as the zone's. */
  readonly services?: readonly { definition: ServiceDefinition; implementation: UntypedServiceImplementation }[];
}

/** The fleet with its listener, as main starts and stops it. */
export interface RunningFleet extends Fleet {
  readonly port: number;
  readonly advertise: string;
  /** Begins to hold streams under this lease; ends them all when it is lost. Called again with each new lease. */
  attach(lease: Lease): Promise<void>;
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
  /** Asks all agents to dial another controller and takes no more of them until it is attached again. */
  drain(): void;
  close(): Promise<void>;
}

const sweepEveryMs = 60_000;
const announceRetryMs = 500;

export async function createFleet(deps: FleetDeps): Promise<RunningFleet> {
  const { controllerId, installationId, store, machines, tasks, authority, sealer, payloads, clock, log } = deps;
  const limits: FleetLimits = { ...usualLimits, ...deps.limits };
  await Promise.all([machines.ready, tasks.ready]);

  const subscribers = new Set<(machineId: string) => void>();
  const changed = (machineId: string) => {
    for (const subscriber of subscribers) subscriber(machineId);
  };
  let lease: Lease | undefined;
  const acting = () => lease?.live === true;

  const identity = await createRenewedIdentity({
    authority,
    identity: { kind: "controller", id: controllerId },
    ...listenerNames(deps.host, deps.advertise),
    clock,
    log,
  });
  const trustBundle = () => authority.trustBundle;
  const { messageBytes } = limits;
  const listener = createAgentListener({ host: deps.host, port: deps.port, identity, trustBundle, messageBytes, log });
  const members = createMembers(store, controllerId, () => sessions.greetAll());
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
    controllerId,
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
    controllers: () => members.addresses,
    disconnect: (address) => listener.disconnect(address),
    events: {
      admit,
      opened(session) {
        dispatch.attach(session);
        // The presence key was told a moment ago; who came too early for the stream comes again.
        changed(session.machineId);
        certificates.used(session.peer).catch((error: unknown) => {
          log.warn("older certificate not ended", { machine: session.machineId, error: String(error) });
        });
      },
      observation: (session, instance) => observations.report(session.machineId, instance),
      progress(session, progress) {
        results.progressed(progress);
        dispatch.progress(session, progress);
        changed(session.machineId);
      },
      result: (session, result) => void dispatch.result(session, result),
      closed: (session) => presence.leave(session),
    },
  });
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
  const dispatch = createTaskDispatch({ tasks: durable, log, sessionOf: sessions.get, cut: sessions.cut });

  async function admit(session: Session): Promise<void> {
    const held = lease;
    if (held?.live !== true) throw new RpcFailure(Code.UNAVAILABLE, "this controller has no lease");
    const machine = await certificates.check(session.peer);
    session.checkedAt = machine.modRevision;
    const newest = await presence.enter(session, held);
    if (!newest) throw new RpcFailure(Code.ABORTED, "a newer stream is elsewhere");
  }

  const machineChanges = machines.subscribe((machineId) => {
    const session = sessions.get(machineId);
    if (session !== undefined && certificates.isRevoked(machineId, session.peer.serial, session.checkedAt)) {
      sessions.cut(session, Code.PERMISSION_DENIED, "machine deleted or certificate superseded");
    }
    const machine = machines.get(machineId)?.object;
    if (machine === undefined) observations.forget(machineId);
    if (machine === undefined || machine.metadata.deletionRequestedAt !== undefined) void failTasksOf(machineId);
  });

  async function failTasksOf(machineId: string): Promise<void> {
    for (const task of durable.openOf(machineId)) {
      await durable
        .end(task.metadata.id, "machineDeleted", "machine_deleted", "The machine was deleted.")
        .catch((error: unknown) =>
          log.warn("task of a deleted machine not ended", { machine: machineId, error: String(error) }),
        );
    }
  }

  /** Memory may not have a machine yet that a task is for; only the store can say that it is gone. */
  async function failOrphans(): Promise<void> {
    for (const machineId of durable.machinesWithOpen()) {
      if (machines.get(machineId) !== undefined) continue;
      if ((await machines.fresh(machineId)) === undefined) await failTasksOf(machineId);
    }
  }

  let lastSweepMs = clock.monotonicMs();
  let working = false;
  const ticking = setInterval(() => {
    if (!acting() || working) return;
    working = true;
    const sweep = clock.monotonicMs() - lastSweepMs >= sweepEveryMs;
    if (sweep) lastSweepMs = clock.monotonicMs();
    tend(sweep)
      .catch((error: unknown) => log.warn("tasks not tended", { error: String(error) }))
      .finally(() => {
        working = false;
      });
  }, limits.tickMs).unref();

  async function tend(sweep: boolean): Promise<void> {
    await durable.expire();
    if (!sweep) return;
    presence.sweep((machineId) => sessions.get(machineId) !== undefined);
    await failOrphans();
    await durable.sweep();
  }

  const certificateRpcs = createCertificateRpcs({ installationId, authority, certificates, log });
  const { payloadBytes } = limits;
  const payloadRpcs = createPayloadRpcs({ installationId, certificates, payloads, payloadBytes, log });
  listener.addService(enrollmentDefinition, { enroll: certificateRpcs.enroll });
  listener.addService(peerDefinition, {
    runTask: createPeerRpcs(installationId, log, (machineId) => (acting() ? sessions.get(machineId) : undefined))
      .runTask,
  });
  listener.addService(agentDefinition, {
    renewCertificate: certificateRpcs.renewCertificate,
    issueServerCertificate: certificateRpcs.issueServerCertificate,
    readPayload: payloadRpcs.readPayload,
    writePayload: (...call: Parameters<typeof payloadRpcs.writePayload>) => void payloadRpcs.writePayload(...call),
    session(call: SessionCall) {
      // Without this a broken stream of one agent would end the process.
      call.on("error", () => undefined);
      try {
        sessions.accept(call, requirePeer(call, installationId, "machine"));
      } catch (error) {
        logRefusal(log, "Session", call, error);
        call.emit("error", RpcFailure.from(error).status);
      }
    },
  });
  for (const { definition, implementation } of deps.services ?? []) listener.addService(definition, implementation);
  const port = await listener.listen();
  const advertise = deps.advertise ?? `${deps.host}:${port}`;

  const fleet: RunningFleet = {
    port,
    advertise,
    async attach(next) {
      lease = next;
      void next.lost.then(() => {
        if (lease === next) stopActing("the controller lost its lease");
      });
      await announce(next);
    },
    async run(machineId, request, timeoutMs, signal) {
      if (!acting()) throw unreachable("This controller has no lease.");
      const id = `${quickPrefix}${randomUUID()}`;
      const task = taskMessage(id, request, clock.now() + timeoutMs, TaskClass.QUICK);
      const here = sessions.get(machineId);
      if (here !== undefined) return here.run(task, timeoutMs, signal);
      const holder = presence.get(machineId)?.controllerId;
      const address = holder === undefined || holder === controllerId ? undefined : members.addressOf(holder);
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
      return members.addresses;
    },
    probeTransfer: (machineId, sizeBytes, signal) => probeTransfer({ fleet, payloads }, machineId, sizeBytes, signal),
    drain: () => stopActing("the controller drains"),
    async close() {
      clearInterval(ticking);
      stopActing("the controller stops");
      machineChanges.close();
      dispatch.close();
      durable.close();
      await closeGently(listener);
      sessions.close();
      for (const part of [peers, observations, presence, members, identity]) part.close();
    },
  };

  /** Until the others know the address, they cannot pass tasks on to this controller. */
  async function announce(held: Lease): Promise<void> {
    while (lease === held && held.live) {
      try {
        return await members.announce(held, advertise);
      } catch (error) {
        log.warn("address not announced", { error: String(error) });
        await delay(announceRetryMs, undefined, { ref: false });
      }
    }
  }

  function stopActing(reason: string): void {
    lease = undefined;
    sessions.releaseAll(reason);
  }
  return fleet;
}

/** A Goodbye that was just written needs a moment to leave. */
async function closeGently(listener: AgentListener): Promise<void> {
  await delay(50);
  await listener.close();
}

function listenerNames(host: string, advertise: string | undefined) {
  const dialled = advertise?.slice(0, advertise.lastIndexOf(":")).replaceAll(/[[\]]/g, "");
  const all = ["localhost", "127.0.0.1", host, ...(dialled === undefined ? [] : [dialled])];
  const isAddress = (name: string) => isIP(name) !== 0;
  const unspecified = new Set(["0.0.0.0", "::", ""]);
  const usable = [...new Set(all)].filter((name) => !unspecified.has(name));
  return { names: usable.filter((name) => !isAddress(name)), addresses: usable.filter(isAddress) };
}

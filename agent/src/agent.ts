import { freemem } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { HelloSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { ControlGroup } from "./os/control-group.ts";
import type { KeeperClient } from "./os/keeper-client.ts";
import { bootId } from "../keeper/boot-clock.ts";
import type { Directories } from "./workload/engine/instance-files.ts";
import type { WorkloadKinds } from "./workload/workload.ts";
import { createWorkloadHost } from "./workload/workload-host.ts";
import { openTaskJournal } from "./journal/journal.ts";
import { createSampling } from "./samples/sampling.ts";
import { createObservationReport } from "./session/observation-report.ts";
import type { OutgoingFrame } from "./session/session.ts";
import { createUplink, type Uplink } from "./session/uplink.ts";
import { createAgentUpgrade } from "./upgrade/agent-upgrade.ts";
import { createHeadroom, ownMemoryBytes } from "./upgrade/headroom.ts";
import type { ReceivedCode } from "./upgrade/received-code.ts";
import type { Predecessor } from "./upgrade/takeover.ts";
import { handlers } from "./tasks/index.ts";
import { TaskFailed } from "./task-failed.ts";
import { engineOf } from "./tasks/task-handler.ts";
import { createTaskRunner } from "./tasks/task-runner.ts";

export interface AgentDeps {
  readonly machineId: string;
  readonly machineStart: string;
  readonly directories: Directories;
  readonly controllers: readonly string[];
  readonly keeper: KeeperClient;
  readonly controlGroup: ControlGroup;
  /** Network interface that only this machine uses; empty if it shares the host's network. */
  readonly networkInterface: string;
  readonly code: ReceivedCode;
  /** The agent that this one replaces; undefined if it replaces none. */
  readonly predecessor: Predecessor | undefined;
  /** The kinds of workloads that it runs. */
  readonly workloads: WorkloadKinds;
  readonly sessionId: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

export interface Agent {
  /** Runs until the signal. The workload continues after it. */
  run(signal: AbortSignal): Promise<void>;
}

const maxUnsent = 200;
/**
 * A new agent adopts the running engine within this time. It reports only then, so that users never see the state
 * "starting".
 */
const adoptedWithinMs = 5_000;

/**
 * Creates the agent out of its parts. The host runs the machine's workload, such as an engine, by the newest spec. The
 * uplink keeps a session to one of the controllers, which delivers specs and tasks and receives observations and
 * samples. During an upgrade of the agent these loops are suspended while the new agent takes over.
 */
export async function createAgent(deps: AgentDeps): Promise<Agent> {
  const { machineId, machineStart, directories, controllers, keeper, workloads, sessionId, clock, random, log } = deps;
  const { code, predecessor } = deps;
  const journal = await openTaskJournal(join(directories.stateDir, "journal"), clock.now);
  /** Results of tasks that ended while no session was open. The journal also has the results of durable tasks. */
  const unsent: TaskResult[] = [];

  const host = createWorkloadHost({
    kinds: workloads,
    shared: {
      directories,
      keeper,
      controlGroup: deps.controlGroup,
      uplink: {
        send: (frame) => uplink.send(frame),
        channel: () => uplink.channel(),
        connected: (signal) => uplink.connected(signal),
        get authorityGeneration() {
          return uplink.authorityGeneration;
        },
      },
      report: { schedule: () => report.schedule(), scheduleProgress: () => report.scheduleProgress() },
      clock,
      log,
    },
    log,
  });

  const sampling = createSampling({
    path: join(directories.stateDir, "samples"),
    group: deps.controlGroup,
    dataDir: directories.dataDir,
    networkInterface: deps.networkInterface,
    workload: host.current,
    send: (frame) => uplink.send(frame),
    clock,
    random,
    log,
  });

  /** Loops that converge the machine to its settings; undefined while they are suspended. */
  let loops: { readonly stop: AbortController; readonly done: Promise<unknown> } | undefined;
  let gapMs = 0;
  const ending = new AbortController();
  const failed = Promise.withResolvers<never>();

  function startLoops(): void {
    const stop = new AbortController();
    const until = AbortSignal.any([ending.signal, stop.signal]);
    const done = Promise.all([host.run(until), sampling.run(until)]);
    done.catch(failed.reject);
    loops = { stop, done };
  }

  const upgrade = createAgentUpgrade({
    keeper,
    code,
    headroom: createHeadroom({ group: deps.controlGroup, agentBytes: ownMemoryBytes, hostFreeBytes: freemem }),
    stateDir: directories.stateDir,
    gapMs: () => gapMs,
    log,
    work: {
      sessionId,
      get isConnected() {
        return uplink.channel() !== undefined;
      },
      isIdle: (taskId) =>
        idleStates.has(host.current()?.status.state ?? "absent") && runner.running.every((id) => id === taskId),
      pauseTasks: () => runner.pause(),
      async suspend() {
        uplink.pause();
        loops?.stop.abort();
        await loops?.done;
        loops = undefined;
        host.current()?.suspend();
        await journal.suspend();
      },
      async resume() {
        if (loops === undefined) {
          await journal.reopen();
          startLoops();
          uplink.resume();
        }
        runner.resume();
      },
      exit: () => ending.abort(),
    },
  });

  const runner = createTaskRunner({
    journal,
    handlers,
    shared: {
      workload: host,
      upgrade,
      engine: async () => engineOf({ workload: host }),
      async channel() {
        const channel = uplink.channel();
        if (channel === undefined) throw new TaskFailed("failed", "No controller is connected.", { retryable: true });
        return channel;
      },
    },
    sendResult(value) {
      if (!uplink.send({ case: "taskResult", value }))
        unsent.splice(0, unsent.length, ...unsent.slice(-maxUnsent), value);
    },
    sendProgress(taskId, step, progressPct) {
      uplink.send({
        case: "taskProgress",
        value: { $typeName: "holdfast.agent.v1.TaskProgress", taskId, step, progressPct },
      });
    },
    now: clock.now,
    log,
  });

  // Tasks start only after this agent has taken over.
  if (predecessor !== undefined) runner.pause();

  const uplink: Uplink = createUplink({
    stateDir: directories.stateDir,
    controllers,
    initialChannel: predecessor?.channel,
    hello: () =>
      create(HelloSchema, {
        machineId,
        agentVersion: code.ownVersion.release,
        agentDigest: code.ownVersion.digest,
        keeperProtocol: keeper.protocol,
        // Differs after each start of the host or of the machine.
        bootId: `${bootId()}/${machineStart}`,
        terms: Object.fromEntries(journal.terms),
        openTasks: journal.openTasks(),
        sessionId,
        replacesSessionId: predecessor?.sessionId ?? "",
        primaryLeaseVersion: 3,
        workloads: Object.keys(workloads),
      }),
    handlers: {
      onTask: runner.accept,
      onCancel: runner.cancel,
      onResultAck: runner.acknowledged,
      onSamplesAck: sampling.acknowledged,
      onPrimaryLeaseResponse: (response) => host.current()?.engine?.onPrimaryLeaseResponse(response),
    },
    onOpen(session) {
      sampling.opened(session.welcome);
      host.current()?.engine?.requestLeaseNow();
      if (loops !== undefined) sendAll(session);
      else if (predecessor !== undefined) handoverDone ??= settle(predecessor).catch(failed.reject);
    },
    clock,
    random,
    log,
  });

  let handoverDone: Promise<void> | undefined;

  async function settle(old: Predecessor): Promise<void> {
    gapMs = await old.settle();
    log.info("agent took over", { gapMs });
    startLoops();
    await Promise.race([host.firstRound(), sleep(adoptedWithinMs, undefined, { ref: false })]);
    isReportSuppressed = false;
    runner.resume();
    sendAll(uplink);
  }

  /** Sends everything that the controller may not have received. */
  function sendAll(session: { send(frame: OutgoingFrame): void }): void {
    for (const value of unsent.splice(0)) session.send({ case: "taskResult", value });
    for (const value of journal.unacknowledged()) session.send({ case: "taskResult", value });
    report.sendNow();
    // The machine's certificate may come from new authorities; the workload's certificate then follows.
    host.current()?.recheck();
  }

  let isReportSuppressed = predecessor !== undefined;

  const report = createObservationReport({
    instance: () => host.current()?.observe(),
    isDue: () => !isReportSuppressed && loops !== undefined,
    send: (frame) => {
      uplink.send(frame);
    },
    now: clock.now,
  });

  return {
    async run(signal) {
      signal.addEventListener("abort", () => ending.abort(), { once: true });
      if (predecessor === undefined) startLoops();
      const endReports = report.start();
      await Promise.race([uplink.run(ending.signal), failed.promise]);
      await loops?.done;
      endReports();
      if (loops !== undefined) await journal.close();
    },
  };
}

/** States in which no change of the engine is in progress. */
const idleStates: ReadonlySet<string> = new Set(["absent", "running", "stopped", "failed"]);

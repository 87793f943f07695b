import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createUplink, type Uplink } from "@holdfast/agent/session/uplink.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import {
  HelloSchema,
  InstanceObservationSchema,
  ObservationSchema,
  PrimaryLeaseRequestSchema,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { TaskResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { answerQueries } from "../support/peer-queries.ts";

// The agents of many machines in one process: each has the real agent's uplink with enrollment, certificate, back-off
// and heartbeats, and reports as often as a real one about an engine that does not exist.
interface Settings {
  /** Directory of the agents' certificates; an agent with a certificate does not enroll again. */
  readonly directory: string;
  readonly installationId: string;
  readonly fingerprint: string;
  readonly controllers: readonly string[];
}

interface Machine {
  readonly id: string;
  readonly token: string;
}

const { directory, installationId, fingerprint, controllers } = JSON.parse(process.argv[2] ?? "") as Settings;
const observationEveryMs = 15_000;
const rightEveryMs = 1_000;
const startedWithinMs = 15_000;
const parameters = Object.fromEntries(
  Array.from({ length: 20 }, (_, index) => [`parameter_${index}`, `${index * 128}`]),
);
/** Time of each agent's newest stream, in milliseconds since 1970. */
const openedAt = new Map<string, number>();
const arrivedAt = new Map<string, number>();
/** Send function of each agent's stream. */
const sends = new Map<string, Uplink["send"]>();
/** Leases granted since the last query. */
let grants = 0;
const now = () => performance.timeOrigin + performance.now();
const stopping = new AbortController();
/** Writes the enrollment as a compute provider does at each start. */
function leaveToken({ id, token }: Machine): void {
  const enrollment = {
    installation_id: installationId,
    machine_id: id,
    controllers,
    ca_fingerprint: fingerprint,
    token,
  };
  writeFileSync(join(directory, id, "enrollment.json"), JSON.stringify(enrollment));
}

function start(machine: Machine): void {
  const stateDir = join(directory, machine.id);
  mkdirSync(stateDir, { recursive: true });
  rmSync(join(stateDir, "controllers.json"), { force: true });
  leaveToken(machine);
  const sessionId = randomUUID();
  const since = timestampFromMs(Date.now());
  let dataBytes = 1_000_000_000n;

  function observe(): void {
    dataBytes += 8_192n;
    const instance = create(InstanceObservationSchema, {
      serviceId: `service-of-${machine.id}`,
      nodeId: machine.id,
      state: "running",
      since,
      generation: 1n,
      term: 1n,
      checks: ["liveness", "storage", "certificate"].map((name) => ({ name, status: "healthy", since })),
      effectiveParameters: parameters,
      dataBytes,
      freeBytes: 10_000_000_000n - dataBytes,
      engineVersion: "17.11",
    });
    uplink.send({
      case: "observation",
      value: create(ObservationSchema, { time: timestampFromMs(Date.now()), instance }),
    });
  }

  const uplink = createUplink({
    stateDir,
    controllers: [],
    hello: () => create(HelloSchema, { machineId: machine.id, agentVersion: "bench", bootId: "boot-1", sessionId }),
    handlers: {
      onTask(task) {
        if (!arrivedAt.has(task.id)) arrivedAt.set(task.id, now());
        uplink.send({ case: "taskResult", value: create(TaskResultSchema, { taskId: task.id }) });
      },
      onCancel: () => undefined,
      onResultAck: () => undefined,
      onSamplesAck: () => undefined,
      onPrimaryLeaseResponse({ granted }) {
        if (granted) grants += 1;
      },
    },
    onOpen() {
      openedAt.set(machine.id, now());
      observe();
    },
    clock: systemClock,
    random: Math.random,
    log: silentLog,
  });
  sends.set(machine.id, uplink.send);
  // Spread, as agents start at different times.
  setTimeout(() => setInterval(observe, observationEveryMs), Math.random() * observationEveryMs);
  void uplink.run(stopping.signal);
}

const started = new Set<string>();

answerQueries({
  /**
   * Starts agents that do not run, and gives the others a new token. Returns the ids without a stream after a while: a
   * token cannot be used twice, even if its response was late.
   */
  async start({ machines }: { machines: Machine[] }) {
    for (const machine of machines) {
      if (started.has(machine.id)) leaveToken(machine);
      else start(machine);
      started.add(machine.id);
    }
    const missing = () => machines.filter(({ id }) => !openedAt.has(id)).map(({ id }) => id);
    for (const until = now() + startedWithinMs; missing().length > 0 && now() < until; ) await sleep(5);
    return missing();
  },
  /** From now on each of these requests its primary lease each second, as the primary of a service of two nodes. */
  async requestLeases({ primaries }: { primaries: string[] }) {
    for (const id of primaries) {
      const send = sends.get(id);
      let number = 0n;
      const ask = () => {
        number += 1n;
        send?.({
          case: "primaryLeaseRequest",
          value: create(PrimaryLeaseRequestSchema, { serviceId: `service-of-${id}`, term: 1n, number }),
        });
      };
      setTimeout(() => setInterval(ask, rightEveryMs), Math.random() * rightEveryMs);
    }
  },
  /** Leases granted since the last query. */
  async grants() {
    const count = grants;
    grants = 0;
    return count;
  },
  /** Number of agents with a stream opened after this time, and the time of the last one. */
  async opened({ sinceMs }: { sinceMs: number }) {
    const since = [...openedAt.values()].filter((at) => at > sinceMs);
    return { count: since.length, lastMs: since.reduce((last, at) => Math.max(last, at), 0) };
  },
  /** Arrival time of each task, in milliseconds since 1970. */
  arrived: async ({ tasks }: { tasks: string[] }) => tasks.map((id) => arrivedAt.get(id) ?? null),
});

process.send?.({});

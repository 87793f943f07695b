import { statfs } from "node:fs/promises";
import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { kafkaClients } from "@holdfast/common/engine-catalog/kafka.ts";
import { effectiveParameters, planOf } from "../effective-parameters.ts";
import type { EngineCheck, EngineObservation, Instance } from "../engine-driver.ts";
import { endForbiddenSessions } from "../front/front-commands.ts";
import { healthy, notLive, notObserved, observeWithFront } from "../front/observe-with-front.ts";
import { readPartitions, readQuorum } from "./cluster-view.ts";
import { countClients, frontsOf } from "./front.ts";
import { probe } from "./heartbeat.ts";
import { kafkaVersion } from "./layout.ts";
import { runningParameters } from "./parameters.ts";
import { describeLogDirs } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { errorCodes, isTransient, KafkaRefusal, requireSuccess } from "./protocol/protocol-error.ts";
import { withSession } from "./session.ts";

const probeMs = 2_000;
/** Together with the probe, below the limit of a check. */
const remainderMs = 700;
/** With less space than this a write fails. */
const fullBytes = 1 << 20;

/** Reads the broker's state through a new session each time. */
export function observe(instance: Instance, signal: AbortSignal): Promise<EngineObservation> {
  const parts = {
    withinMs: probeMs,
    readEngine: (bounded: AbortSignal) => withSession(instance, bounded, (session) => readBroker(instance, session)),
    failed: async (error: unknown, late: EngineCheck | undefined) => ({
      ...notObserved,
      responded: error instanceof KafkaRefusal,
      checks:
        late === undefined
          ? [await livenessFailure(instance, error)]
          : [late, ...(await readRemainder(instance, signal))],
    }),
    readFront: (bounded: AbortSignal) => readFront(instance, bounded),
    connectionLimit: kafkaClients(planOf(instance.spec)),
  };
  return observeWithFront(instance, parts, signal);
}

async function readFront(instance: Instance, signal: AbortSignal): Promise<number> {
  for (const front of frontsOf(instance)) await endForbiddenSessions(front, signal);
  return countClients(instance, signal);
}

async function readBroker(instance: Instance, session: Connection): Promise<EngineObservation> {
  const written = probe(instance, session, probeMs).then(
    () => healthy("liveness"),
    (error: unknown) => {
      if (error instanceof KafkaRefusal) return livenessFailure(instance, error);
      throw error;
    },
  );
  const [liveness, partitions, quorum, running, dataBytes] = await Promise.all([
    written,
    partitionsCheck(session),
    quorumCheck(instance, session),
    runningParameters(instance, session),
    readDataBytes(session),
  ]);
  const catalog = parametersOf(instance.spec.engine, instance.spec.version);
  const pendingRestart = [...effectiveParameters(instance)]
    .filter(([name, value]) => catalog.get(name)?.needsRestart === true && running.get(name) !== value)
    .map(([name]) => name);
  return {
    responded: true,
    version: kafkaVersion,
    checks: [liveness, partitions, quorum],
    pendingRestart,
    effectiveParameters: Object.fromEntries(running),
    dataBytes,
  };
}

/**
 * The cluster as a broker has it that takes no write in time, so that no earlier check remains: metadata are its own
 * copy, and only a leader of the quorum answers for that.
 */
async function readRemainder(instance: Instance, signal: AbortSignal): Promise<EngineCheck[]> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(remainderMs)]);
  const [partitions, quorum] = await Promise.allSettled([
    withSession(instance, limit, partitionsCheck),
    withSession(instance, limit, (session) => quorumCheck(instance, session)),
  ]);
  signal.throwIfAborted();
  if (partitions.status === "rejected")
    return ["partitions", "quorum"].map((name) => ({
      name,
      status: "degraded",
      reason: "the broker does not respond",
    }));
  const ofQuorum = quorum.status === "fulfilled" ? quorum.value : withoutLeader;
  if (ofQuorum.status === "healthy") return [partitions.value, ofQuorum];
  const reason = "their state is not known: the members have no leader";
  return [{ name: "partitions", status: "degraded", reason }, ofQuorum];
}

const withoutLeader: EngineCheck = { name: "quorum", status: "unhealthy", reason: "the members have no leader" };

async function partitionsCheck(session: Connection): Promise<EngineCheck> {
  const { partitions } = await readPartitions(session);
  const offline = partitions.filter(({ leader }) => leader < 0).length;
  if (offline > 0) return { name: "partitions", status: "unhealthy", reason: `${offline} partitions have no leader` };
  const lacking = partitions.filter(({ replicas, inSync }) => inSync.length < replicas.length).length;
  if (lacking > 0)
    return { name: "partitions", status: "degraded", reason: `${lacking} partitions lack in-sync replicas` };
  return healthy("partitions");
}

async function quorumCheck(instance: Instance, session: Connection): Promise<EngineCheck> {
  return (await readQuorum(instance, session)) === undefined ? withoutLeader : healthy("quorum");
}

async function readDataBytes(session: Connection): Promise<number> {
  const answer = await session.call(describeLogDirs, { topics: null });
  requireSuccess("DescribeLogDirs", answer);
  for (const directory of answer.directories) requireSuccess("DescribeLogDirs", directory);
  const sizes = answer.directories.flatMap(({ topics }) => topics.flatMap((topic) => topic.partitions));
  return sizes.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

async function livenessFailure(instance: Instance, error: unknown): Promise<EngineCheck> {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ECONNREFUSED" || code === "ENOENT") return notLive("The engine does not listen for connections.");
  const { bavail, bsize } = await statfs(instance.paths.data);
  if (bavail * bsize < fullBytes) return notLive("disk full");
  if (code === errorCodes.storageError) return notLive("cannot write to disk");
  if (code === errorCodes.notEnoughReplicas || code === errorCodes.notEnoughReplicasAfter)
    return { name: "liveness", status: "degraded", reason: "too few in-sync replicas" };
  if (isTransient(error)) return { name: "liveness", status: "degraded", reason: "recovering" };
  return notLive(error instanceof Error ? error.message : String(error));
}

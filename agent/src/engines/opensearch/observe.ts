import { statfs } from "node:fs/promises";
import { opensearchClients } from "@holdfast/common/engine-catalog/opensearch.ts";
import { planOf } from "../effective-parameters.ts";
import type { EngineCheck, EngineObservation, Instance } from "../engine-driver.ts";
import { countSessions, endForbiddenSessions } from "../front/front-commands.ts";
import { healthy, notLive, notObserved, observeWithFront } from "../front/observe-with-front.ts";
import { OpensearchRefusal } from "./api.ts";
import { type ClusterHealth, readFigures, readHealth } from "./figures.ts";
import { clientListener, frontOf, openFront } from "./front.ts";
import { probe, readUnreplicated, type Unreplicated } from "./heartbeat.ts";
import { memberCountOf, opensearchVersion } from "./layout.ts";
import { runningParameters } from "./parameters.ts";
import { parametersAtStart } from "./settings.ts";

const probeMs = 2_000;
/** With less space than this a write fails. */
const fullBytes = 1 << 20;

/** Reads the member's state. */
export function observe(instance: Instance, signal: AbortSignal): Promise<EngineObservation> {
  const parts = {
    withinMs: probeMs,
    async readEngine(bounded: AbortSignal) {
      const member = await readMember(instance, bounded);
      // A front that was restarted forwards no clients yet; one that does not respond is found by `readFront`.
      await openFront(instance, bounded).catch(() => undefined);
      return member;
    },
    failed: async (error: unknown, late: EngineCheck | undefined) => ({
      ...notObserved,
      responded: error instanceof OpensearchRefusal,
      checks: [late ?? (await livenessFailure(instance, error))],
    }),
    readFront: (bounded: AbortSignal) => readFront(instance, bounded),
    connectionLimit: opensearchClients(planOf(instance.spec)),
  };
  return observeWithFront(instance, parts, signal);
}

async function readFront(instance: Instance, signal: AbortSignal): Promise<number> {
  await endForbiddenSessions(frontOf(instance), signal);
  return countSessions(frontOf(instance), clientListener, signal);
}

async function readMember(instance: Instance, signal: AbortSignal): Promise<EngineObservation> {
  const health = await readHealth(instance, signal);
  // Without a leader a write waits for one.
  if (!health.hasLeader)
    return { ...notObserved, responded: true, checks: checksOf(instance, health, withoutLeader, []) };
  const written = probe(instance, signal).then(
    () => healthy("liveness"),
    (error: unknown) => {
      if (error instanceof OpensearchRefusal) return livenessFailure(instance, error);
      throw error;
    },
  );
  const [liveness, running, figures, unreplicated] = await Promise.all([
    written,
    runningParameters(instance, signal),
    readFigures(instance, signal),
    memberCountOf(instance) > 1 ? readUnreplicated(instance, signal).catch(ifRefused) : [],
  ]);
  const pendingRestart = parametersAtStart(instance).flatMap(([name, value]) =>
    running.get(name) === value ? [] : [name],
  );
  return {
    responded: true,
    version: opensearchVersion,
    checks: checksOf(instance, health, liveness, unreplicated),
    pendingRestart,
    effectiveParameters: Object.fromEntries(running),
    dataBytes: figures.dataBytes,
  };
}

const withoutLeader = notLive("the members have no leader");

/** Liveness has the fault of the index that the record is in. */
function ifRefused(error: unknown): readonly Unreplicated[] {
  if (error instanceof OpensearchRefusal) return [];
  throw error;
}

function checksOf(
  instance: Instance,
  health: ClusterHealth,
  liveness: EngineCheck,
  unreplicated: readonly Unreplicated[],
): EngineCheck[] {
  const quorum = health.hasLeader ? healthy("quorum") : { ...withoutLeader, name: "quorum" };
  return [liveness, clusterCheck(instance, health, unreplicated), quorum];
}

/** Copies of shards that are missing are no fault of a single member, which has no place for them. */
function clusterCheck(
  instance: Instance,
  { status, unassignedShards, fillingShards }: ClusterHealth,
  unreplicated: readonly Unreplicated[],
): EngineCheck {
  const name = "cluster";
  if (status === "red") return { name, status: "unhealthy", reason: "an index lacks a primary shard" };
  if (status === "yellow" && memberCountOf(instance) > 1) {
    const missing = unassignedShards > 0 ? [`${unassignedShards} copies of shards have no member`] : [];
    const filling = fillingShards > 0 ? [`${fillingShards} copies of shards are being filled`] : [];
    return { name, status: "degraded", reason: [...missing, ...filling].join(", ") };
  }
  const [refusing] = unreplicated;
  if (refusing !== undefined) {
    const others = unreplicated.length > 1 ? ` and ${unreplicated.length - 1} more` : "";
    const reason = `the index ${refusing.name}${others} has no replica: ${refusing.reason}`;
    return { name, status: "degraded", reason };
  }
  return healthy(name);
}

async function livenessFailure(instance: Instance, error: unknown): Promise<EngineCheck> {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ECONNREFUSED" || code === "ENOENT") return notLive("The engine does not listen for connections.");
  const { bavail, bsize } = await statfs(instance.paths.data);
  if (bavail * bsize < fullBytes) return notLive("disk full");
  if (error instanceof OpensearchRefusal && error.status === 503)
    return { name: "liveness", status: "degraded", reason: "recovering" };
  return notLive(error instanceof Error ? error.message : String(error));
}

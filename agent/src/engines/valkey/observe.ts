import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { valkeyClients } from "@holdfast/common/engine-catalog/valkey.ts";
import { connectionsCheck } from "../connections-check.ts";
import { effectiveParameters, planOf } from "../effective-parameters.ts";
import type { EngineCheck, EngineObservation, Instance } from "../engine-driver.ts";
import { EngineBusy } from "../engine-errors.ts";
import { roleOf } from "../members.ts";
import { isEngineReply, parseInfo, type Session, withSession } from "./session.ts";
import { endForbiddenSessions } from "../front/front-commands.ts";
import { frontOf } from "./front.ts";
import { isOutOfMemory, probe } from "./ready.ts";
import { runningParameters } from "./reload.ts";
import { blockingParameter, isBlockingLimit } from "./render.ts";
import { observeReplication, readInfo } from "./replication/status.ts";

const probeTimeoutMs = 2_000;

/**
 * Reads the engine's state through a new session each time; a failed probe is a result. The engine also counts as down
 * if its front does not respond, since no client can connect.
 */
export async function observe(instance: Instance, signal: AbortSignal): Promise<EngineObservation> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(probeTimeoutMs)]);
  const failed = (error: unknown): EngineObservation => {
    signal.throwIfAborted();
    const checks = bounded.aborted
      ? [unhealthy(`The engine did not respond within ${probeTimeoutMs / 1_000} s.`)]
      : failureChecks(error);
    const hasResponded = !bounded.aborted && isEngineReply(error);
    return { responded: hasResponded, version: "", checks, pendingRestart: [], effectiveParameters: {}, dataBytes: 0 };
  };
  const [engine, listenerChecks] = await Promise.all([
    withSession(instance, bounded, (session) => readEngine(instance, session)).catch(failed),
    endForbiddenSessions(frontOf(instance), bounded).then(
      () => [],
      () => {
        signal.throwIfAborted();
        return [unhealthy("The front does not accept connections.")];
      },
    ),
  ]);
  return listenerChecks.length === 0 || engine.version === "" ? engine : { ...engine, checks: listenerChecks };
}

async function readEngine(instance: Instance, session: Session): Promise<EngineObservation> {
  const isReplica = roleOf(instance.spec) === "replica";
  const refusal = isReplica ? undefined : await probe(session).then(() => undefined, refusalOf);
  const replication =
    instance.spec.replication === undefined
      ? undefined
      : observeReplication(instance, await readInfo(instance, session));
  const info = parseInfo(String(await session.call("INFO", "server", "clients", "persistence", "memory")));
  const clients = valkeyClients(planOf(instance.spec));
  const running = await runningParameters(instance, session);
  const catalog = parametersOf("valkey", instance.spec.version);
  const pendingRestart = [...effectiveParameters(instance)]
    .filter(([name, value]) => catalog.get(name)?.needsRestart === true && running.get(name) !== value)
    .map(([name]) => name);
  const isBlocked = isOutOfMemory(refusal) && isBlockingLimit(info.get("maxmemory"));
  return {
    responded: true,
    version: info.get("valkey_version") ?? "",
    checks: [
      refusal === undefined || isBlocked ? persistenceCheck(info) : livenessFailure(refusal),
      { name: "commands", status: "healthy", reason: "" },
      ...(replication?.checks ?? []),
      connectionsCheck(instance.spec.engine, Number(info.get("connected_clients")), clients),
    ],
    pendingRestart,
    effectiveParameters: Object.fromEntries(
      instance.writesBlocked === true ? userParameters(instance, running) : running,
    ),
    dataBytes: Number(info.get("aof_current_size") ?? 0),
    ...(replication && { replication: replication.reported }),
    memoryDataBytes: Number(info.get("used_memory") ?? 0),
  };
}

/** The engine's refusal of a write. Any other error, and a running script, end the observation. */
function refusalOf(error: unknown): unknown {
  if (error instanceof EngineBusy || !isEngineReply(error)) throw error;
  return error;
}

/** Reports the user's own value of the parameter that blocks writes. */
function userParameters(instance: Instance, running: ReadonlyMap<string, string>): Map<string, string> {
  const desired = effectiveParameters(instance).get(blockingParameter);
  return desired === undefined ? new Map(running) : new Map(running).set(blockingParameter, desired);
}

/**
 * Check of the append-only file. A write is in memory before it is in the file, and remains in memory if the file
 * cannot be written. The engine retries each second and refuses more writes until it succeeds.
 */
function persistenceCheck(info: ReadonlyMap<string, string>): EngineCheck {
  if (info.get("aof_last_write_status") === "err") return unhealthy("cannot write to disk");
  return { name: "liveness", status: "healthy", reason: "" };
}

/** Checks of an engine that could not be observed. */
function failureChecks(error: unknown): EngineCheck[] {
  if (!(error instanceof EngineBusy)) return [livenessFailure(error)];
  return ["liveness", "commands"].map((name) => ({ name, status: "degraded", reason: error.message }));
}

/** The liveness check for a failed probe. */
function livenessFailure(error: unknown): EngineCheck {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (isOutOfMemory(error)) {
    return { name: "liveness", status: "degraded", reason: "The memory is full." };
  }
  if (message.startsWith("LOADING"))
    return { name: "liveness", status: "degraded", reason: "The engine is loading its data." };
  if (message.includes("max number of clients")) {
    return { name: "liveness", status: "degraded", reason: "too many clients" };
  }
  if (message.startsWith("MISCONF")) {
    return unhealthy(message.includes("No space left") ? "disk full" : "cannot write to disk");
  }
  if (code === "ENOENT" || code === "ECONNREFUSED") return unhealthy("The engine does not listen for connections.");
  return unhealthy(message);
}

function unhealthy(reason: string): EngineCheck {
  return { name: "liveness", status: "unhealthy", reason };
}

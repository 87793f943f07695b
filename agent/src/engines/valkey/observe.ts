import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { clientsOf } from "@holdfast/common/engine-catalog/plan-parameters.ts";
import { connectionsCheck } from "../connections-check.ts";
import { effectiveParameters, planOf } from "../effective-parameters.ts";
import type { EngineCheck, EngineObservation, Instance } from "../engine-driver.ts";
import { EngineBusy } from "../engine-errors.ts";
import { roleOf } from "../members.ts";
import { parseInfo } from "./info.ts";
import { endForbiddenSessions } from "./listener.ts";
import { isOutOfMemory, probe } from "./probe.ts";
import { runningParameters } from "./reload.ts";
import { blockingParameter, isBlockingLimit } from "./render.ts";
import { lookAtReplication, readInfo } from "./replication/status.ts";
import { isAnswer, type Session, withSession } from "./session.ts";

const probeMs = 2_000;

/**
 * Fresh from the engine, through a new session each time. A probe that fails is an answer. An engine whose listener does not
 * answer is no more alive than one that takes no write: nobody gets in.
 */
export async function observe(instance: Instance, signal: AbortSignal): Promise<EngineObservation> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(probeMs)]);
  const failed = (error: unknown): EngineObservation => {
    signal.throwIfAborted();
    const checks = bounded.aborted ? [unhealthy(`no answer in ${probeMs} ms`)] : verdicts(error);
    const answered = !bounded.aborted && isAnswer(error);
    return { answered, version: "", checks, pendingRestart: [], effectiveParameters: {}, dataBytes: 0 };
  };
  const [engine, silence] = await Promise.all([
    withSession(instance, bounded, (session) => look(instance, session)).catch(failed),
    endForbiddenSessions(instance, bounded).then(
      () => [],
      () => {
        signal.throwIfAborted();
        return [unhealthy("the listener does not answer")];
      },
    ),
  ]);
  return silence.length === 0 || engine.version === "" ? engine : { ...engine, checks: silence };
}

async function look(instance: Instance, session: Session): Promise<EngineObservation> {
  const isReplica = roleOf(instance.spec) === "replica";
  const refusal = isReplica ? undefined : await probe(session).then(() => undefined, refusalOf);
  const replication =
    instance.spec.replication === undefined
      ? undefined
      : lookAtReplication(instance, await readInfo(instance, session));
  const info = parseInfo(String(await session.call("INFO", "server", "clients", "persistence", "memory")));
  const clients = clientsOf("valkey", planOf(instance.spec));
  const running = await runningParameters(instance, session);
  const known = parametersOf("valkey", instance.spec.version);
  const pendingRestart = [...effectiveParameters(instance)]
    .filter(([name, value]) => known.get(name)?.needsRestart === true && running.get(name) !== value)
    .map(([name]) => name);
  const isBlocked = isOutOfMemory(refusal) && isBlockingLimit(info.get("maxmemory"));
  return {
    answered: true,
    version: info.get("valkey_version") ?? "",
    checks: [
      refusal === undefined || isBlocked ? persistenceVerdict(info) : verdict(refusal),
      { name: "commands", status: "healthy", reason: "" },
      ...(replication?.checks ?? []),
      connectionsCheck(Number(info.get("connected_clients")), clients),
    ],
    pendingRestart,
    effectiveParameters: Object.fromEntries(instance.writesBlocked === true ? unblocked(instance, running) : running),
    dataBytes: Number(info.get("aof_current_size") ?? 0),
    ...(replication && { replication: replication.told }),
    memoryDataBytes: Number(info.get("used_memory") ?? 0),
  };
}

/** Why the engine takes no write; what is no answer of its own, and a script that runs, end the look. */
function refusalOf(error: unknown): unknown {
  if (error instanceof EngineBusy || !isAnswer(error)) throw error;
  return error;
}

/** Pure: users are shown their own value of the parameter by which their writes are refused. */
function unblocked(instance: Instance, running: ReadonlyMap<string, string>): Map<string, string> {
  const own = effectiveParameters(instance).get(blockingParameter);
  return own === undefined ? new Map(running) : new Map(running).set(blockingParameter, own);
}

/**
 * Pure: a write is in memory before it is in the file, and undone by nobody when the file does not take it. The server
 * tries again each second and refuses further writes until then.
 */
function persistenceVerdict(info: ReadonlyMap<string, string>): EngineCheck {
  if (info.get("aof_last_write_status") === "err") return unhealthy("cannot write to disk");
  return { name: "liveness", status: "healthy", reason: "" };
}

/** Pure: the checks of an engine that could not be looked at. */
function verdicts(error: unknown): EngineCheck[] {
  if (!(error instanceof EngineBusy)) return [verdict(error)];
  return ["liveness", "commands"].map((name) => ({ name, status: "degraded", reason: error.message }));
}

/** Pure: what a failed probe says of the engine. */
function verdict(error: unknown): EngineCheck {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (isOutOfMemory(error)) {
    return { name: "liveness", status: "degraded", reason: "memory full" };
  }
  if (message.startsWith("LOADING")) return { name: "liveness", status: "degraded", reason: "recovering" };
  if (message.includes("max number of clients")) {
    return { name: "liveness", status: "degraded", reason: "too many clients" };
  }
  if (message.startsWith("MISCONF")) {
    return unhealthy(message.includes("No space left") ? "disk full" : "cannot write to disk");
  }
  if (code === "ENOENT" || code === "ECONNREFUSED") return unhealthy("nobody listens");
  return unhealthy(message);
}

function unhealthy(reason: string): EngineCheck {
  return { name: "liveness", status: "unhealthy", reason };
}

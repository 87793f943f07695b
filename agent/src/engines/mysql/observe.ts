import { statfs } from "node:fs/promises";
import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { connectionsCheck } from "../connections-check.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { EngineCheck, EngineObservation, Instance } from "../engine-driver.ts";
import { endForbiddenSessions } from "../front/front-commands.ts";
import { notObserved } from "../front/observe-with-front.ts";
import { roleOf } from "../members.ts";
import { type AccountRepair, accountsCheck } from "./account-repair.ts";
import { dataBytes } from "./databases.ts";
import type { EventStates } from "./event-states.ts";
import { frontOf, userSessions } from "./front.ts";
import type { GlobalLocks } from "./global-locks.ts";
import { checkPooler } from "./pooler.ts";
import type { Probe } from "./probe.ts";
import { codeOf, messageOf, numberOf, type Session, withSession } from "./session.ts";
import type { SlowStatements } from "./slow-log.ts";
import type { LostAcknowledgments } from "./replication/lost-acknowledgments.ts";
import { waitsForReplica } from "./replication/peer-port.ts";
import { observeReplication } from "./replication/status.ts";
import { endRefusedSessions } from "./user-sessions.ts";
import { countSessions, userParameters } from "./variables.ts";

const probeTimeoutMs = 2_000;
/** Free space in bytes below which a write may wait for space. */
const fullBytes = 1 << 20;

interface Deps {
  readonly probe: Probe;
  readonly locks: GlobalLocks;
  readonly accounts: AccountRepair;
  readonly events: EventStates;
  /** Makes a replica follow its primary, without waiting for it. */
  readonly follow: (instance: Instance) => void;
  readonly slowStatements: SlowStatements;
  readonly lostAcknowledgments: LostAcknowledgments;
}

/**
 * Reads the engine's state through new sessions; a failed probe is a result. The engine also counts as down if its
 * front does not respond, since no client can connect.
 */
export async function observe(deps: Deps, instance: Instance, signal: AbortSignal): Promise<EngineObservation> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(probeTimeoutMs + 500)]);
  const [engine, frontChecks, pooler] = await Promise.all([
    observeEngine(deps, instance, { bounded, signal }).catch((error: unknown): EngineObservation => {
      signal.throwIfAborted();
      const check = bounded.aborted
        ? unhealthy(`The engine did not respond within ${probeTimeoutMs / 1_000} s.`)
        : livenessFailure(error);
      return { ...notObserved, responded: !bounded.aborted && numberOf(error) !== 0, checks: [check] };
    }),
    endForbiddenSessions(frontOf(instance), bounded).then(
      () => [],
      () => {
        signal.throwIfAborted();
        return [unhealthy("The front does not accept connections.")];
      },
    ),
    checkPooler(instance, bounded),
  ]);
  const checks = frontChecks.length === 0 || engine.version === "" ? engine.checks : frontChecks;
  return { ...engine, checks: pooler === undefined ? checks : [...checks, pooler] };
}

async function observeEngine(
  deps: Deps,
  instance: Instance,
  { bounded, signal }: { readonly bounded: AbortSignal; readonly signal: AbortSignal },
) {
  const { probe, locks, accounts, events, follow, slowStatements, lostAcknowledgments } = deps;
  const isReplicated = instance.spec.replication !== undefined;
  const isPrimary = roleOf(instance.spec) === "primary";
  // The replica may have lost its connection, or the primary may have been restarted.
  if (!isPrimary) follow(instance);
  // The write's own session outlives this observation if the write hangs.
  const write = () =>
    probe.write(instance, probeTimeoutMs, AbortSignal.timeout(probeTimeoutMs)).then(
      (isDone) => (isDone ? undefined : "late"),
      (error: unknown) => {
        if (numberOf(error) === 0) throw error;
        return error;
      },
    );
  const written = isPrimary ? await write() : undefined;
  return withSession(
    instance,
    // If the probe's write hangs, finding the cause gets its own time limit.
    written === undefined ? bounded : AbortSignal.any([signal, AbortSignal.timeout(probeTimeoutMs)]),
    async (session) => {
      await lostAcknowledgments.check(instance, session);
      const holder = await locks.check(session);
      const liveness = written === undefined ? healthy("liveness") : await writeFailure(instance, written, holder);
      const limit = userSessions(instance);
      const replication = isReplicated ? await observeReplication(session) : undefined;
      // A user's lock of all databases delays changes of accounts too.
      if (isPrimary && holder === undefined) await Promise.all([accounts.repair(instance), events.record(instance)]);
      await endRefusedSessions(session);
      await slowStatements.record(instance, session, signal);
      const unusable = isPrimary ? await accountsCheck(session) : undefined;
      const connections = connectionsCheck(instance.spec.engine, await countSessions(session), limit);
      return {
        ...(await readSettings(instance, session)),
        responded: true,
        checks: [liveness, ...(replication?.checks ?? []), connections, ...(unusable ? [unusable] : [])],
        dataBytes: await dataBytes(session),
        ...(replication && { replication: replication.reported }),
      };
    },
    { withinMs: probeTimeoutMs, isLocal: waitsForReplica(instance) },
  );
}

async function readSettings(instance: Instance, session: Session) {
  const [row] = await session.rows<{ version: string }>("SELECT VERSION() AS version");
  const running = await userParameters(instance, session);
  const catalog = parametersOf(instance.spec.engine, instance.spec.version);
  const pendingRestart = [...effectiveParameters(instance)]
    .filter(([name, value]) => catalog.get(name)?.needsRestart === true && running.get(name) !== value)
    .map(([name]) => name);
  return { version: row?.version ?? "", pendingRestart, effectiveParameters: Object.fromEntries(running) };
}

/** Liveness check of an engine that responds but did not commit the probe's write. */
async function writeFailure(instance: Instance, failure: unknown, holder: string | undefined): Promise<EngineCheck> {
  // A user's lock does not mean that the engine fails.
  if (holder !== undefined) return { name: "liveness", status: "degraded", reason: holder };
  const { bavail, bsize } = await statfs(instance.paths.data);
  if (bavail * bsize < fullBytes) return unhealthy("disk full");
  return failure === "late"
    ? unhealthy(`The engine did not commit a write within ${probeTimeoutMs / 1_000} s.`)
    : livenessFailure(failure);
}

/** ER_CON_COUNT_ERROR and ER_TOO_MANY_USER_CONNECTIONS. */
const sessionsUsed = [1040, 1203];
/** ER_DISK_FULL and ER_RECORD_FILE_FULL. */
const full = [1021, 1114];
/** ER_OPTION_PREVENTS_STATEMENT. */
const readOnly = 1290;

/** The liveness check for a failed probe. */
function livenessFailure(error: unknown): EngineCheck {
  const number = numberOf(error);
  if (sessionsUsed.includes(number)) return { name: "liveness", status: "degraded", reason: "too many clients" };
  if (full.includes(number)) return unhealthy("disk full");
  if (number === readOnly) return { name: "liveness", status: "degraded", reason: "The engine is read-only." };
  if (number === 1053) return unhealthy("The engine is shutting down.");
  if (["ENOENT", "ECONNREFUSED"].includes(codeOf(error)))
    return unhealthy("The engine does not listen for connections.");
  return unhealthy(messageOf(error));
}

function healthy(name: string): EngineCheck {
  return { name, status: "healthy", reason: "" };
}

function unhealthy(reason: string): EngineCheck {
  return { name: "liveness", status: "unhealthy", reason };
}

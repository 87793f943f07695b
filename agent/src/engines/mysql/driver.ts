import { listenersOf } from "../addresses.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { Companion, EngineCommand, EngineDriver, Fingerprint, Instance } from "../engine-driver.ts";
import { frontCompanion, missingFront } from "../front/front.ts";
import { createAccountRepair } from "./account-repair.ts";
import { createBackup } from "./backup/backup.ts";
import { bootstrap } from "./bootstrap.ts";
import { databases } from "./databases.ts";
import { createEventStates } from "./event-states.ts";
import { frontOf, peersFrontOf } from "./front.ts";
import { createGlobalLocks } from "./global-locks.ts";
import { dataDirectory, frontProgram, optionFile, serverProgram } from "./layout.ts";
import { explainFailure, parseLog } from "./log.ts";
import { metrics } from "./metrics.ts";
import { observe } from "./observe.ts";
import { poolerCompanion } from "./pooler.ts";
import { createProbe } from "./probe.ts";
import { queryStats } from "./query-stats.ts";
import { readOnlyQuery } from "./read-only-query.ts";
import { createReady } from "./ready.ts";
import { createSpaceReclaimer } from "./reclaim-space.ts";
import { reload } from "./reload.ts";
import { createFollower } from "./replication/follow.ts";
import { hasPeers } from "./replication/peer-port.ts";
import { createLostAcknowledgments } from "./replication/lost-acknowledgments.ts";
import { createReplication } from "./replication/replication.ts";
import { render } from "./render.ts";
import { messageOf } from "./session.ts";
import { sessions } from "./sessions.ts";
import { createSlowStatements, slowLog } from "./slow-log.ts";
import { startProgress } from "./start-progress.ts";
import { users } from "./users.ts";

/**
 * Driver of MySQL.
 *
 * The engine listens on a Unix socket. Clients connect to its front (front.ts), which enforces the allow-list and
 * passes TLS on, since TLS begins inside the engine's protocol. The agent signs in over the socket as the platform's
 * account, whose random password is stored beside the data. Users' roles are privileges on all databases, restricted in
 * the databases of the engine and the platform (access.ts). Members replicate through a separate front (replication/).
 * Another front, the pooler, forwards clients to the primary (pooler.ts).
 */
export function createMysqlDriver(deps: EngineDeps): EngineDriver {
  const monotonic = () => performance.now();
  const own = {
    probe: createProbe(),
    locks: createGlobalLocks(monotonic),
    accounts: createAccountRepair(),
    events: createEventStates(),
    follow: createFollower(deps),
    slowStatements: createSlowStatements(deps),
    lostAcknowledgments: createLostAcknowledgments(),
  };
  return {
    engine: "mysql",
    topology: "primary_replicas",
    software: () => "/usr",
    fingerprint: (software, signal) => fingerprint(deps, software, signal),
    render,
    listeners: listenersOf,
    bootstrap: (instance, signal) => bootstrap(deps, instance, signal),
    command,
    companions: (instance) => [frontCompanion(frontOf(instance)), peersCompanion(instance), poolerCompanion(instance)],
    // A second process of the front, without which no image runs MySQL.
    offersPooler: async () => true,
    ready: createReady(deps),
    stop: { signal: "SIGTERM", graceMs: 60_000 },
    reclaimSpace: createSpaceReclaimer(monotonic),
    reload,
    observe: (instance, signal) => observe(own, instance, signal),
    parseLog,
    slowLog,
    startProgress,
    explainFailure,
    users,
    databases,
    backup: createBackup(deps),
    replication: createReplication(deps),
    metrics,
    queryStats,
    sessions,
    readOnlyQuery,
  };
}

/** Checks the engine and HAProxy: without HAProxy the allow-list cannot be enforced, so the engine counts as absent. */
async function fingerprint({ run }: EngineDeps, software: string, signal: AbortSignal): Promise<Fingerprint> {
  const missing = await missingFront(run, frontProgram(software), signal);
  if (missing !== undefined) return { present: false, reason: missing };
  const program = serverProgram(software);
  try {
    const version = /Ver (\d[\d.]*)/.exec(await run([program, "--no-defaults", "--version"], { signal }))?.[1];
    if (version !== undefined) return { present: true, version };
    return { present: false, reason: `${program} did not print its version` };
  } catch (error) {
    return { present: false, reason: messageOf(error) };
  }
}

/** Front of the peer port, as an optional companion: the engine serves its users without it. */
function peersCompanion(instance: Instance): Companion {
  return { ...frontCompanion(peersFrontOf(instance)), isOptional: true, isEnabled: hasPeers(instance) };
}

function command(instance: Instance): EngineCommand {
  return {
    argv: [serverProgram(instance.paths.software), `--defaults-file=${optionFile(instance)}`],
    env: { LC_ALL: "C", TZ: "UTC" },
    cwd: dataDirectory(instance),
  };
}

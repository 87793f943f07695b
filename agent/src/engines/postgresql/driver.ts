import { listenersOf } from "../addresses.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { EngineCommand, EngineDriver, Fingerprint, Instance } from "../engine-driver.ts";
import { createBackup } from "./backup/backup.ts";
import type { RecoveryDeps } from "./backup/private-server.ts";
import { bootstrap } from "./bootstrap.ts";
import { collations } from "./collations.ts";
import { createDataSize } from "./data-size.ts";
import { databases } from "./databases.ts";
import { identity } from "./identity/identity.ts";
import { keyCopyArgv, keyFiles } from "./key-copy.ts";
import { dataDirectory, program } from "./layout.ts";
import { explainFailure, parseLog } from "./log.ts";
import { metrics } from "./metrics.ts";
import { observe } from "./observe.ts";
import { createPooler } from "./pooler/pooler.ts";
import { queryStats } from "./query-stats.ts";
import { createQueues } from "./queue/queues.ts";
import { readOnlyQuery } from "./read-only-query.ts";
import { ready } from "./ready.ts";
import { reload } from "./reload.ts";
import { render } from "./render.ts";
import { synchronizesSlots } from "./replication/members.ts";
import { createReplication } from "./replication/replication.ts";
import { memoryLimitArgv, sessionMemoryBytes } from "./session-memory.ts";
import { messageOf } from "./session.ts";
import { sessions } from "./sessions.ts";
import { startProgress } from "./start-progress.ts";
import { createUpgrade } from "./upgrade/upgrade.ts";
import { users } from "./users.ts";

/**
 * Driver of PostgreSQL.
 *
 * The data directory is `postgresql` on the data disk, the configuration is outside of it. The agent connects over the
 * Unix socket as the superuser `holdfast`, to the database `holdfast`, which users cannot enter; platform-client.ts
 * opens every session with settings that users cannot change for it. Clients connect by TLS and SCRAM from the
 * addresses of the allow-list. Features that span several files have folders: backup/, replication/, upgrade/, queue/,
 * identity/ (users of apps) and pooler/ (PgBouncer).
 */
export function createPostgresqlDriver(deps: RecoveryDeps): EngineDriver {
  const dataSize = createDataSize();
  const pooler = createPooler(deps);
  return {
    engine: "postgresql",
    topology: "primary_replicas",
    software: (version) => `/usr/lib/postgresql/${version}`,
    fingerprint: (software, signal) => fingerprint(deps, software, signal),
    render,
    listeners: listenersOf,
    bootstrap: (instance, signal) => bootstrap(deps, instance, signal),
    command,
    companions: (instance) => [pooler.companion(instance)],
    offersPooler: pooler.isInstalled,
    ready,
    // Fast shutdown: ends the sessions and writes a checkpoint.
    stop: { signal: "SIGINT", graceMs: 60_000 },
    reload: (instance, signal) => reload({ ...deps, pooler }, instance, signal),
    observe: (instance, signal) => observe({ dataSize, pooler }, instance, signal),
    parseLog,
    startProgress,
    explainFailure,
    users,
    databases,
    collations,
    queues: createQueues(),
    identity,
    backup: createBackup(deps),
    replication: createReplication(deps),
    upgrade: createUpgrade(deps),
    metrics,
    queryStats,
    sessions,
    readOnlyQuery,
  };
}

async function fingerprint({ run }: EngineDeps, software: string, signal: AbortSignal): Promise<Fingerprint> {
  const postgres = `${software}/bin/postgres`;
  try {
    const version = /\(PostgreSQL\) (\S+)/.exec(await run([postgres, "--version"], { signal }))?.[1];
    if (version !== undefined) return { present: true, version };
    return { present: false, reason: `${postgres} did not print its version` };
  } catch (error) {
    return { present: false, reason: messageOf(error) };
  }
}

/**
 * A replica copies the primary's logical slots with FAILOVER, from 17 on (PostgreSQL manual, "Logical Replication
 * Failover"). The arguments apply to one start, with the `wal_level` of that start: a postmaster that reads
 * `sync_replication_slots` in its file while its `wal_level` is `replica` may end.
 */
function slotSyncArgv(instance: Instance): string[] {
  return synchronizesSlots(instance) ? ["-c", "sync_replication_slots=on", "-c", "hot_standby_feedback=on"] : [];
}

/** The postmaster in the foreground; it logs to standard error. */
function command(instance: Instance): EngineCommand {
  const directory = dataDirectory(instance);
  const configuration = `config_file=${instance.paths.config}/postgresql.conf`;
  const before = [...keyCopyArgv(keyFiles(instance)), ...memoryLimitArgv(sessionMemoryBytes(instance))];
  return {
    argv: [...before, program(instance, "postgres"), "-D", directory, "-c", configuration, ...slotSyncArgv(instance)],
    // Out of memory, the kernel kills a session instead of the postmaster, which then recovers by itself.
    env: { LC_ALL: "C", TZ: "UTC", PG_OOM_ADJUST_FILE: "/proc/self/oom_score_adj", PG_OOM_ADJUST_VALUE: "400" },
    cwd: directory,
  };
}

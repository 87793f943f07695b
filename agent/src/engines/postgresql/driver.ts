import { listenersOf } from "../engine-addresses.ts";
import type { EngineDriver, Fingerprint } from "../engine-driver.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { createBackup } from "./backup/backup.ts";
import { bootstrap } from "./bootstrap.ts";
import { collations } from "./collations.ts";
import { command } from "./command.ts";
import { databases } from "./databases.ts";
import { identity } from "./identity/identity.ts";
import { explainFailure, parseLog } from "./log.ts";
import { metrics } from "./metrics.ts";
import { createDataSize } from "./data-size.ts";
import { observe } from "./observe.ts";
import { queryStats } from "./query-stats.ts";
import { createPooler } from "./pooler/pooler.ts";
import { readOnlyQuery } from "./read-only-query.ts";
import { createQueues } from "./queues.ts";
import { ready } from "./ready.ts";
import { reload } from "./reload.ts";
import { render } from "./render.ts";
import { createReplication } from "./replication/replication.ts";
import { messageOf } from "./session.ts";
import { sessions } from "./sessions.ts";
import { createUpgrade } from "./upgrade/upgrade.ts";
import { users } from "./users.ts";

/** PostgreSQL: one data directory below the data disk, configuration outside of it, the platform over the Unix socket. */
export function createPostgresqlDriver(deps: EngineDeps): EngineDriver {
  const dataSize = createDataSize();
  const pooler = createPooler(deps);
  return {
    engine: "postgresql",
    topology: "single_primary",
    software: (version) => `/usr/lib/postgresql/${version}`,
    fingerprint: (software, signal) => fingerprint(deps, software, signal),
    render,
    listeners: listenersOf,
    bootstrap: (instance, signal) => bootstrap(deps, instance, signal),
    command,
    companions: (instance) => [pooler.companion(instance)],
    offersPooler: pooler.isInstalled,
    ready,
    // Fast shutdown: sessions are ended, a checkpoint is written.
    stop: { signal: "SIGINT", graceMs: 60_000 },
    reload: (instance, signal) => reload({ ...deps, pooler }, instance, signal),
    observe: (instance, signal) => observe({ dataSize, pooler }, instance, signal),
    parseLog,
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
    return { present: false, reason: `${postgres} does not tell its version` };
  } catch (error) {
    return { present: false, reason: messageOf(error) };
  }
}

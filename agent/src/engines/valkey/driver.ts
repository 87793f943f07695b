import { listenersOf } from "../addresses.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { EngineCommand, EngineDriver, Fingerprint, Instance } from "../engine-driver.ts";
import { frontCompanion, missingFront } from "../front/front.ts";
import { createBackup } from "./backup/backup.ts";
import { bootstrap } from "./bootstrap.ts";
import { endCommands } from "./end-commands.ts";
import { frontOf } from "./front.ts";
import { dataDirectory, frontProgram } from "./layout.ts";
import { explainFailure, parseLog } from "./log.ts";
import { metrics } from "./metrics.ts";
import { observe } from "./observe.ts";
import { ready } from "./ready.ts";
import { createSpaceReclaimer, removeTemporaryFiles } from "./reclaim-space.ts";
import { reload } from "./reload.ts";
import { render } from "./render.ts";
import { stopFollowing } from "./replication/follower-files.ts";
import { createReplication } from "./replication/replication.ts";
import { users } from "./users.ts";

/**
 * Driver of Valkey.
 *
 * The engine listens on a Unix socket only. Its front (front.ts) terminates TLS and enforces the allow-list; members of
 * a service replicate through a second port of the front by certificate (replication/). The append-only file holds all
 * data; snapshots are taken only for backups. The agent signs in over the socket as the platform's user, whose random
 * password is stored beside the data.
 */
export function createValkeyDriver(deps: EngineDeps): EngineDriver {
  return {
    engine: "valkey",
    topology: "primary_replicas",
    singleThreaded: true,
    acceptsDeletesWhenBlocked: true,
    software: () => "/usr",
    fingerprint: (software, signal) => fingerprint(deps, software, signal),
    render,
    listeners: listenersOf,
    async bootstrap(instance) {
      await bootstrap(deps, instance);
      await removeTemporaryFiles(instance);
      await stopFollowing(instance);
    },
    command,
    companions: (instance) => [frontCompanion(frontOf(instance))],
    ready,
    stop: { signal: "SIGTERM", graceMs: 60_000 },
    endCommands,
    reclaimSpace: createSpaceReclaimer(Date.now),
    reload,
    observe,
    parseLog,
    explainFailure,
    users,
    backup: createBackup(deps),
    replication: createReplication(deps),
    metrics,
  };
}

/** Checks the engine and HAProxy: without HAProxy the allow-list cannot be enforced, so the engine counts as absent. */
async function fingerprint({ run }: EngineDeps, software: string, signal: AbortSignal): Promise<Fingerprint> {
  const missing = await missingFront(run, frontProgram(software), signal);
  if (missing !== undefined) return { present: false, reason: missing };
  try {
    const version = /v=(\d\S*)/.exec(await run([`${software}/bin/valkey-server`, "--version"], { signal }))?.[1];
    if (version !== undefined) return { present: true, version };
    return { present: false, reason: `${software}/bin/valkey-server did not print its version` };
  } catch (error) {
    return { present: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

function command(instance: Instance): EngineCommand {
  const { software, config } = instance.paths;
  return {
    argv: [`${software}/bin/valkey-server`, `${config}/valkey.conf`],
    env: { LC_ALL: "C", TZ: "UTC" },
    cwd: dataDirectory(instance),
  };
}

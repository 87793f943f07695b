import { listenersOf } from "../addresses.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { Companion, EngineCommand, EngineDriver, Fingerprint, Instance } from "../engine-driver.ts";
import { createBackup } from "./backup/backup.ts";
import { bootstrap } from "./bootstrap.ts";
import { endCommands } from "./end-commands.ts";
import { dataDirectory } from "./layout.ts";
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
 * The engine listens on a Unix socket only. HAProxy, a companion, terminates TLS and enforces the allow-list in front
 * of it (listener-config.ts); members of a service replicate through a second port of HAProxy by certificate
 * (replication/). The append-only file holds all data; snapshots are taken only for backups. The agent signs in over
 * the socket as the platform's user, whose random password is stored beside the data.
 */
export function createValkeyDriver(deps: EngineDeps): EngineDriver {
  return {
    engine: "valkey",
    topology: "single_primary",
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
    companions: (instance) => [haproxy(instance)],
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

/** Without HAProxy the allow-list cannot be enforced, so the engine counts as absent. */
async function fingerprint({ run }: EngineDeps, software: string, signal: AbortSignal): Promise<Fingerprint> {
  try {
    await run([`${software}/sbin/haproxy`, "-v"], { signal });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { present: false, reason: `the allow-list cannot be enforced here without HAProxy: ${why}` };
  }
  try {
    const version = /v=(\d\S*)/.exec(await run([`${software}/bin/valkey-server`, "--version"], { signal }))?.[1];
    if (version !== undefined) return { present: true, version };
    return { present: false, reason: `${software}/bin/valkey-server did not print its version` };
  } catch (error) {
    return { present: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

const env = { LC_ALL: "C", TZ: "UTC" };

function command(instance: Instance): EngineCommand {
  const { software, config } = instance.paths;
  return { argv: [`${software}/bin/valkey-server`, `${config}/valkey.conf`], env, cwd: dataDirectory(instance) };
}

/** HAProxy, the only process that listens for clients. */
function haproxy(instance: Instance): Companion {
  const { software, config } = instance.paths;
  return {
    name: "listener",
    command: { argv: [`${software}/sbin/haproxy`, "-db", "-f", `${config}/listener.cfg`], env, cwd: "/" },
    // HAProxy has no handler for SIGTERM, and the kernel drops unhandled signals to the first process of a namespace.
    stop: { signal: "SIGUSR1", graceMs: 2_000 },
  };
}

import { listenersOf } from "../engine-addresses.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { EngineDriver, Fingerprint } from "../engine-driver.ts";
import { createBackup } from "./backup/backup.ts";
import { bootstrap } from "./bootstrap.ts";
import { command, listener } from "./command.ts";
import { endCommands } from "./end-commands.ts";
import { createFreeRoom, removeLeftovers } from "./free-room.ts";
import { explainFailure, parseLog } from "./log.ts";
import { metrics } from "./metrics.ts";
import { observe } from "./observe.ts";
import { ready } from "./ready.ts";
import { reload } from "./reload.ts";
import { render } from "./render.ts";
import { followNobody } from "./replication/follower-files.ts";
import { createReplication } from "./replication/replication.ts";
import { users } from "./users.ts";

/** Valkey on a Unix socket only, behind a listener that speaks TLS and holds to the allow-list. */
export function createValkeyDriver(deps: EngineDeps): EngineDriver {
  return {
    engine: "valkey",
    topology: "single_primary",
    answersInTurn: true,
    freesWhenBlocked: true,
    software: () => "/usr",
    fingerprint: (software, signal) => fingerprint(deps, software, signal),
    render,
    listeners: listenersOf,
    async bootstrap(instance) {
      await bootstrap(deps, instance);
      await removeLeftovers(instance);
      await followNobody(instance);
    },
    command,
    companions: (instance) => [listener(instance)],
    ready,
    stop: { signal: "SIGTERM", graceMs: 60_000 },
    endCommands,
    freeRoom: createFreeRoom(Date.now),
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

/** Without the listener nothing could hold to the allow-list, so the engine counts as absent. */
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
    return { present: false, reason: `${software}/bin/valkey-server does not tell its version` };
  } catch (error) {
    return { present: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

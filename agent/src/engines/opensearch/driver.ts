import { listenersOf } from "../addresses.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { EngineDriver, Fingerprint } from "../engine-driver.ts";
import { frontCompanion, missingFront } from "../front/front.ts";
import { parseLog4jLine } from "../log4j-line.ts";
import { createBackup } from "./backup/backup.ts";
import { createSpaceReclaimer } from "./backup/reclaim-space.ts";
import { filesCompanion } from "./backup/files-companion.ts";
import { bootstrap } from "./bootstrap.ts";
import { command } from "./command.ts";
import { frontOf } from "./front.ts";
import { indices } from "./indices.ts";
import { frontProgram, homeDirectory, javaProgram } from "./layout.ts";
import { explainFailure } from "./log.ts";
import { metrics } from "./metrics.ts";
import { observe } from "./observe.ts";
import { createPeers } from "./peers.ts";
import { ready } from "./ready.ts";
import { reload } from "./reload.ts";
import { render } from "./render.ts";
import { users } from "./users.ts";

/**
 * Driver of OpenSearch with its security plugin.
 *
 * Clients use the engine's own HTTP API. The engine has no allow-list, so its front (front.ts) enforces it and
 * terminates TLS, and connects on by certificates that exist on this machine alone. Users and their roles (roles.ts)
 * are in the plugin's index, and the agent changes them through the same API: it is an administrator by its
 * certificate. Parameters that apply live are stored with the state of the cluster. Members find each other by their
 * private addresses and elect their leader (peers.ts).
 */
export function createOpensearchDriver(deps: EngineDeps): EngineDriver {
  return {
    engine: "opensearch",
    topology: "peers",
    acceptsDeletesWhenBlocked: true,
    software: () => "/usr",
    fingerprint: (software, signal) => fingerprint(deps, software, signal),
    render,
    listeners: listenersOf,
    bootstrap: (instance, signal) => bootstrap(deps, instance, signal),
    command,
    companions: (instance) => [frontCompanion(frontOf(instance)), filesCompanion(instance)],
    ready: (instance, signal) => ready(deps, instance, signal),
    stop: { signal: "SIGTERM", graceMs: 30_000 },
    reclaimSpace: createSpaceReclaimer(deps, Date.now),
    reload,
    observe,
    parseLog: parseLog4jLine,
    explainFailure,
    users,
    indices,
    backup: createBackup(deps),
    peers: createPeers(deps),
    metrics,
  };
}

/** Without HAProxy the allow-list cannot be enforced, so the engine counts as absent. */
async function fingerprint({ run }: EngineDeps, software: string, signal: AbortSignal): Promise<Fingerprint> {
  const missing = await missingFront(run, frontProgram(software), signal);
  if (missing !== undefined) return { present: false, reason: missing };
  const libraries = `${homeDirectory(software)}/lib`;
  try {
    const [files] = await Promise.all([
      run(["ls", libraries], { signal }),
      run([javaProgram(software), "-XX:-UsePerfData", "-Xmx16m", "-version"], { signal }),
    ]);
    const version = /^opensearch-(\d+\.\d+\.\d+)\.jar$/m.exec(files)?.[1];
    if (version !== undefined) return { present: true, version };
    return { present: false, reason: `${libraries} has no engine` };
  } catch (error) {
    return { present: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

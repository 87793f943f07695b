import { existsSync } from "node:fs";
import { opensearchHeapBytes } from "@holdfast/common/engine-catalog/opensearch.ts";
import { listenersOf } from "../addresses.ts";
import { planOf } from "../effective-parameters.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { EngineCommand, EngineDriver, Fingerprint, Instance } from "../engine-driver.ts";
import { frontCompanion, missingFront } from "../front/front.ts";
import { parseLog4jLine } from "../log4j-line.ts";
import { bootstrap } from "./bootstrap.ts";
import { frontOf } from "./front.ts";
import { indices } from "./indices.ts";
import {
  configDirectory,
  engineDirectory,
  formingFile,
  frontProgram,
  homeDirectory,
  javaProgram,
  nodeNameOf,
  ownNumber,
  serverProgram,
  temporaryDirectory,
} from "./layout.ts";
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
 * certificate. Parameters that apply live are stored with the state of the cluster.
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
    companions: (instance) => [frontCompanion(frontOf(instance))],
    ready,
    stop: { signal: "SIGTERM", graceMs: 30_000 },
    reload,
    observe,
    parseLog: parseLog4jLine,
    explainFailure,
    users,
    indices,
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

/** The engine's own launcher is a script with a second Java process; these are the options that it computes. */
function command(instance: Instance): EngineCommand {
  const home = homeDirectory(instance.paths.software);
  const heap = `${Math.floor(opensearchHeapBytes(planOf(instance.spec)) / 1024 ** 2)}m`;
  const temporary = temporaryDirectory(instance);
  return {
    argv: [
      serverProgram(instance),
      `-Xms${heap}`,
      `-Xmx${heap}`,
      // The engine refuses the serial collector where it has an address of a network.
      "-XX:+UseG1GC",
      "-XX:G1ReservePercent=25",
      "-XX:InitiatingHeapOccupancyPercent=30",
      "-XX:+ExitOnOutOfMemoryError",
      "-XX:-UsePerfData",
      `-Djava.io.tmpdir=${temporary}`,
      `-Djna.tmpdir=${temporary}`,
      "-Djava.awt.headless=true",
      "-Dfile.encoding=UTF-8",
      "-Djava.security.manager=allow",
      "-Djava.util.concurrent.ForkJoinPool.common.threadFactory=org.opensearch.secure_sm.SecuredForkJoinWorkerThreadFactory",
      "-Dopensearch.networkaddress.cache.ttl=60",
      "-Dopensearch.networkaddress.cache.negative.ttl=10",
      "-Dio.netty.noUnsafe=true",
      "-Dio.netty.noKeySetOptimization=true",
      "-Dio.netty.recycler.maxCapacityPerThread=0",
      "-Dlog4j.shutdownHookEnabled=false",
      "-Dlog4j2.disable.jmx=true",
      `-Dopensearch.path.home=${home}`,
      `-Dopensearch.path.conf=${configDirectory(instance)}`,
      "-Dopensearch.distribution.type=zip",
      "-cp",
      `${home}/lib/*`,
      "org.opensearch.bootstrap.OpenSearch",
      ...firstMember(instance),
    ],
    env: { LC_ALL: "C", TZ: "UTC" },
    cwd: engineDirectory(instance),
  };
}

/** The engine ignores the name once it has the state of a cluster. */
function firstMember(instance: Instance): string[] {
  if (!existsSync(formingFile(instance))) return [];
  return [`-Ecluster.initial_cluster_manager_nodes=${nodeNameOf(ownNumber(instance))}`];
}

import { readdirSync } from "node:fs";
import { opensearchHeapBytes } from "@holdfast/common/engine-catalog/opensearch.ts";
import { planOf } from "../effective-parameters.ts";
import type { EngineCommand, Instance } from "../engine-driver.ts";
import {
  configDirectory,
  engineDirectory,
  formingNumbers,
  homeDirectory,
  nodeNameOf,
  serverProgram,
  temporaryDirectory,
} from "./layout.ts";

/** The engine's own launcher is a script with a second Java process; these are the options that it computes. */
export function command(instance: Instance): EngineCommand {
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
      ...firstMembers(instance),
    ],
    env: { LC_ALL: "C", TZ: "UTC" },
    cwd: engineDirectory(instance),
  };
}

/**
 * Names of the members that form the cluster, until it exists: by them, a member that lost its data would form another.
 */
function firstMembers(instance: Instance): string[] {
  const [numbers] = readdirSync(engineDirectory(instance))
    .map(formingNumbers)
    .filter((found) => found !== undefined);
  if (numbers === undefined) return [];
  return [`-Ecluster.initial_cluster_manager_nodes=${numbers.map(nodeNameOf).join()}`];
}

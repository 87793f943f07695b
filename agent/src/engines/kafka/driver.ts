import { kafkaHeapBytes } from "@holdfast/common/engine-catalog/kafka.ts";
import { listenersOf } from "../addresses.ts";
import { planOf } from "../effective-parameters.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { EngineCommand, EngineDriver, Fingerprint, Instance } from "../engine-driver.ts";
import { frontCompanion, missingFront } from "../front/front.ts";
import { parseLog4jLine } from "../log4j-line.ts";
import { createBackup } from "./backup/backup.ts";
import { bootstrap } from "./bootstrap.ts";
import { frontOf, hasPrivateListener, privateFrontOf } from "./front.ts";
import {
  engineDirectory,
  exporterFile,
  frontProgram,
  jarDirectory,
  javaProgram,
  loggingName,
  portsOf,
  serverProgram,
  settingsName,
} from "./layout.ts";
import { explainFailure } from "./log.ts";
import { metrics } from "./metrics.ts";
import { observe } from "./observe.ts";
import { createPeers } from "./peers.ts";
import { ready } from "./ready.ts";
import { reload } from "./reload.ts";
import { render } from "./render.ts";
import { topics } from "./topics.ts";
import { users } from "./users.ts";

/**
 * Driver of Kafka in KRaft mode.
 *
 * Each member is a broker and a controller of the cluster in one process. The broker has no allow-list, so its
 * front (front.ts) enforces it and terminates TLS, and connects on by certificates that exist on this machine alone
 * (certificates.ts). Users sign in by SCRAM behind it; their roles are ACLs (access.ts). The agent calls the broker by
 * Kafka's protocol (protocol/) and is a superuser by its certificate. Parameters that apply live are stored by the
 * broker with the metadata of the cluster, so the agent sets them after each start too.
 */
export function createKafkaDriver(deps: EngineDeps): EngineDriver {
  return {
    engine: "kafka",
    topology: "peers",
    acceptsDeletesWhenBlocked: true,
    software: () => "/usr",
    fingerprint: (software, signal) => fingerprint(deps, software, signal),
    render,
    listeners: listenersOf,
    bootstrap: (instance, signal) => bootstrap(deps, instance, signal),
    command,
    companions: (instance) => [
      frontCompanion(frontOf(instance)),
      {
        ...frontCompanion(privateFrontOf(instance)),
        isOptional: true,
        isEnabled: hasPrivateListener(instance),
      },
    ],
    ready,
    // A broker without a majority cannot leave in order. It recovers its log at the next start.
    stop: { signal: "SIGTERM", graceMs: 30_000 },
    reload,
    observe,
    parseLog: parseLog4jLine,
    explainFailure,
    users,
    topics,
    backup: createBackup(deps),
    peers: createPeers(deps),
    metrics,
  };
}

/** Without HAProxy the allow-list cannot be enforced, so the engine counts as absent. */
async function fingerprint({ run }: EngineDeps, software: string, signal: AbortSignal): Promise<Fingerprint> {
  const missing = await missingFront(run, frontProgram(software), signal);
  if (missing !== undefined) return { present: false, reason: missing };
  try {
    const [files] = await Promise.all([
      run(["ls", jarDirectory(software)], { signal }),
      run([javaProgram(software), "-XX:-UsePerfData", "-Xmx16m", "-version"], { signal }),
    ]);
    const version = /^kafka_2\.13-(\d+\.\d+\.\d+)\.jar$/m.exec(files)?.[1];
    if (version !== undefined) return { present: true, version };
    return { present: false, reason: `${jarDirectory(software)} has no broker` };
  } catch (error) {
    return { present: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

function command(instance: Instance): EngineCommand {
  const { config, software } = instance.paths;
  const { spec } = instance;
  const heap = `${Math.floor(kafkaHeapBytes(planOf(spec)) / 1024 ** 2)}m`;
  const exporter = `${spec.address}:${portsOf(instance).exporter}:${exporterFile(instance)}`;
  return {
    argv: [
      serverProgram(instance),
      `-Xms${heap}`,
      `-Xmx${heap}`,
      // With few processors, threads of a concurrent collector take time from clients.
      ...(spec.vcpu <= 2 ? ["-XX:+UseSerialGC"] : ["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]),
      "-XX:+ExitOnOutOfMemoryError",
      "-XX:-UsePerfData",
      "-Djava.awt.headless=true",
      `-Dlog4j.configuration=file:${config}/${loggingName}`,
      `-javaagent:${jarDirectory(software)}/jmx_prometheus_javaagent-1.0.1.jar=${exporter}`,
      "-cp",
      `${jarDirectory(software)}/*`,
      "kafka.Kafka",
      `${config}/${settingsName}`,
    ],
    env: { LC_ALL: "C", TZ: "UTC" },
    cwd: engineDirectory(instance),
  };
}

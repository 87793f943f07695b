import { existsSync } from "node:fs";
import type { EngineDeps } from "@holdfast/agent/engines/engine-deps.ts";
import type { EngineCommand, EngineDriver, Fingerprint, Instance } from "@holdfast/agent/engines/engine-driver.ts";
import { endOfLog, nextLine } from "@holdfast/agent/workload/log-reader.ts";
import type { Engine } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { callEtcd } from "./api.ts";
import { databases } from "./databases.ts";
import {
  clientUrl,
  dataDirectory,
  nameOf,
  ownDirectory,
  ownNumber,
  ownTarget,
  peerUrl,
  readInitial,
} from "./layout.ts";
import { createPeers, makeDirectory } from "./peers.ts";

/** Driver of etcd, an engine of the tests. Each member is an etcd that takes part in the elections of the cluster. */
export function createEtcdDriver({ run, runAsEngine }: EngineDeps): EngineDriver {
  return {
    engine: "etcd" as Engine,
    topology: "peers",
    software: () => "/usr",
    fingerprint: (software, signal) => fingerprint(run, software, signal),
    render: () => [],
    listeners: ({ spec }) => [{ address: spec.address, port: spec.port }],
    async bootstrap(instance) {
      if (!existsSync(ownDirectory(instance))) await makeDirectory(instance);
    },
    command,
    ready,
    stop: { signal: "SIGTERM", graceMs: 10_000 },
    // etcd reads its certificate for each connection.
    reload: async () => undefined,
    async observe(instance, signal) {
      const body = await callEtcd<{ version: string; leader?: string; dbSize?: string }>(
        ownTarget(instance),
        "maintenance/status",
        {},
        signal,
      );
      const hasLeader = body.leader !== undefined && body.leader !== "0";
      return {
        responded: true,
        version: body.version,
        checks: [
          hasLeader
            ? { name: "liveness", status: "healthy", reason: "" }
            : { name: "liveness", status: "unhealthy", reason: "The members have no leader." },
        ],
        pendingRestart: [],
        effectiveParameters: { ...instance.spec.parameters },
        dataBytes: Number(body.dbSize ?? 0),
      };
    },
    parseLog(line) {
      try {
        const { ts, level, msg } = JSON.parse(line) as { ts: string; level: string; msg: string };
        return {
          time: new Date(ts),
          level: level === "warn" ? "warning" : level === "info" ? "info" : "error",
          message: msg,
        };
      } catch {
        return undefined;
      }
    },
    explainFailure: (output) => ({
      cause: "unknown",
      message: output.trim().split("\n").at(-1) ?? "",
      parameter: undefined,
    }),
    databases,
    peers: createPeers({ runAsEngine }),
  };
}

/** Resolves when the member responds. A started one prints a line then; an adopted one has printed it before. */
async function ready(instance: Instance, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const cursor = await endOfLog(instance.paths.log);
    const limit = AbortSignal.any([signal, AbortSignal.timeout(1_000)]);
    const status = await callEtcd(ownTarget(instance), "maintenance/status", {}, limit).catch(() => undefined);
    if (status !== undefined) return;
    const matches = (line: string) => line.includes("ready to serve client requests");
    await nextLine(instance.paths.log, cursor, { matches, ended: signal, signal: limit }).catch(() => undefined);
  }
}

async function fingerprint(run: EngineDeps["run"], software: string, signal: AbortSignal): Promise<Fingerprint> {
  try {
    const version = /etcd Version: (\S+)/.exec(await run([`${software}/bin/etcd`, "--version"], { signal }))?.[1];
    return version === undefined ? { present: false, reason: "etcd has no version" } : { present: true, version };
  } catch (error) {
    return { present: false, reason: (error as Error).message };
  }
}

function command(instance: Instance): EngineCommand {
  const { spec, paths } = instance;
  const { state, cluster } = readInitial(instance);
  const client = clientUrl(instance);
  const peer = peerUrl(spec.address);
  return {
    argv: [
      `${paths.software}/bin/etcd`,
      `--name=${nameOf(ownNumber(instance))}`,
      `--data-dir=${dataDirectory(instance)}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--cert-file=${paths.tls}/server.crt`,
      `--key-file=${paths.tls}/server.key`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=${cluster}`,
      `--initial-cluster-state=${state}`,
      `--initial-cluster-token=${spec.peers?.clusterId ?? ""}`,
      `--snapshot-count=${spec.parameters["snapshot-count"] ?? "10000"}`,
      // A replacement joins while the lost member is still one; the leader's agent has the majority in view.
      "--strict-reconfig-check=false",
      "--heartbeat-interval=100",
      "--election-timeout=1000",
      "--log-outputs=stderr",
    ],
    env: {},
    cwd: ownDirectory(instance),
  };
}

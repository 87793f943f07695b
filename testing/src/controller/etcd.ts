import { rm } from "node:fs/promises";
import { asRoot, programDirectory, testProgram, testUid } from "../platform/platform-software.ts";
import { freePorts } from "../platform/free-ports.ts";
import { startTemporaryProcess } from "../platform/temporary-process.ts";

/** A real etcd of one member, without fsync, for one test file. */
export interface TestEtcd {
  /** `http://127.0.0.1:<port>`; unchanged by restarts. */
  readonly url: string;
  readonly port: number;
  /** Stops etcd gracefully and removes its data. */
  stop(): Promise<void>;
  /** Kills etcd (SIGKILL); its data remain. */
  kill(): Promise<void>;
  /** Starts etcd again after `kill`, with its data and port; `empty` deletes its data first. */
  start(options?: { empty?: boolean }): Promise<void>;
  /** Stops etcd gracefully and starts it again. */
  restart(): Promise<void>;
  /** Sends etcd a signal, such as SIGSTOP. */
  signal(signal: NodeJS.Signals): void;
  /** Compacts the history before the revision. */
  compact(revision: bigint): Promise<void>;
  /** Remaining seconds of the lease of a key, -1 if it has none that lives. A renewal of the lease raises them. */
  leaseSecondsOf(key: string): Promise<number>;
}

/** Resolves when etcd serves. `flags` are additional flags of etcd. */
export async function startTestEtcd(flags: readonly string[] = []): Promise<TestEtcd> {
  const etcd = testProgram("etcd", "3.5");
  const directory = programDirectory("holdfast-etcd");
  const [port = 0, peer = 0] = await freePorts(2);
  const url = `http://127.0.0.1:${port}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  const argv = [
    etcd.executable("etcd"),
    `--data-dir=${directory}/data`,
    "--name=test",
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=test=${peerUrl}`,
    // A cluster of one elects itself after one timeout; the defaults make that a second.
    "--heartbeat-interval=10",
    "--election-timeout=50",
    "--unsafe-no-fsync",
    "--log-level=info",
    ...flags,
  ];
  const launch = etcd.launch({ argv, uid: testUid, binds: [directory], asRoot });
  const begin = () => startTemporaryProcess(launch, /ready to serve client requests/);
  let running = await begin();
  const call = async (path: string, body: Record<string, unknown>) => {
    const response = await fetch(`${url}/v3/${path}`, { method: "POST", body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path} ${JSON.stringify(body)}: ${await response.text()}`);
    return response.json();
  };
  return {
    url,
    port,
    async stop() {
      await running.end("SIGTERM");
      await rm(directory, { recursive: true, force: true });
    },
    kill: () => running.end("SIGKILL"),
    async start({ empty = false } = {}) {
      if (empty) await rm(`${directory}/data`, { recursive: true, force: true });
      running = await begin();
    },
    async restart() {
      await running.end("SIGTERM");
      running = await begin();
    },
    signal: (signal) => running.signal(signal),
    async compact(revision) {
      await call("kv/compaction", { revision: String(revision), physical: true });
    },
    async leaseSecondsOf(key) {
      const { kvs } = (await call("kv/range", { key: Buffer.from(key).toString("base64") })) as {
        kvs?: { lease?: string }[];
      };
      const { TTL } = (await call("lease/timetolive", { ID: kvs?.[0]?.lease ?? "0" })) as { TTL: string };
      return Number(TTL);
    },
  };
}

import { rm } from "node:fs/promises";
import { asRoot, programDirectory, testProgram, testUid } from "../platform/platform-software.ts";
import { freePorts } from "../platform/free-ports.ts";
import { startTemporaryProcess } from "../platform/temporary-process.ts";

/** A real member of etcd, without fsync, for one test file; the only one by default. */
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
  const [port = 0, peer = 0] = await freePorts(2);
  // A cluster of one elects itself after one timeout; the defaults make that a second.
  const quick = ["--heartbeat-interval=10", "--election-timeout=50"];
  return startMember({ name: "test", port, peer }, `test=${localUrl(peer)}`, [...quick, ...flags]);
}

/** Members of one etcd, with the default time-outs. Resolves when all serve. */
export async function startTestEtcdCluster(count: number): Promise<readonly TestEtcd[]> {
  const ports = await freePorts(2 * count);
  const members = Array.from({ length: count }, (_, at) => ({
    name: `test-${at}`,
    port: ports[2 * at] ?? 0,
    peer: ports[2 * at + 1] ?? 0,
  }));
  const cluster = members.map(({ name, peer }) => `${name}=${localUrl(peer)}`).join(",");
  return Promise.all(members.map((member) => startMember(member, cluster, [])));
}

const localUrl = (port: number) => `http://127.0.0.1:${port}`;

async function startMember(
  { name, port, peer }: { readonly name: string; readonly port: number; readonly peer: number },
  cluster: string,
  flags: readonly string[],
): Promise<TestEtcd> {
  const etcd = testProgram("etcd", "3.5");
  const directory = programDirectory("holdfast-etcd");
  const [url, peerUrl] = [localUrl(port), localUrl(peer)];
  const argv = [
    etcd.executable("etcd"),
    `--data-dir=${directory}/data`,
    `--name=${name}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=${cluster}`,
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

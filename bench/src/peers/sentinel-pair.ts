import { chown, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connectValkey } from "@holdfast/testing/api/clients.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { asRoot, programDirectory, testProgram, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { startTemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { timeoutMs, startShortTimeoutWriter } from "../support/short-timeout-writer.ts";
import { openMembers } from "../support/sorted-set.ts";
import type { FailingPair } from "../support/write-gaps.ts";

/** The next failover of the same primary starts at the earliest twice this time after the last. */
const failoverTimeoutMs = 5_000;
const group = "bench";

/** Two Valkey servers and three sentinels, of which two must agree, without TLS; only for a paused primary. */
export async function createSentinelPair(downAfterMs: number): Promise<FailingPair> {
  const valkey = testProgram("valkey", "8.1");
  const directory = programDirectory("bench-sentinel");
  const ports = await freePorts(5);
  const [first = 0, second = 0, ...sentinels] = ports;
  const common = ["--bind", "127.0.0.1", "--dir", directory, "--repl-diskless-sync-delay", "0"];

  async function start(...args: string[]) {
    const argv = [valkey.executable("valkey-server"), ...args];
    const launch = valkey.launch({ argv, uid: testUid, binds: [directory], asRoot });
    return startTemporaryProcess(launch, /Ready to accept connections|Sentinel ID is/);
  }
  async function startServer(port: number, ...args: string[]) {
    const files = ["--appendonly", "yes", "--appenddirname", `aof-${port}`, "--dbfilename", `${port}.rdb`];
    return { port, process: await start("--port", String(port), ...common, ...files, ...args) };
  }
  const servers = [await startServer(first), await startServer(second, "--replicaof", `127.0.0.1 ${first}`)];
  const watching = await Promise.all(
    sentinels.map(async (port) => {
      const file = join(directory, `sentinel-${port}.conf`);
      const lines = [
        `port ${port}`,
        "bind 127.0.0.1",
        `dir ${directory}`,
        `sentinel monitor ${group} 127.0.0.1 ${first} 2`,
        `sentinel down-after-milliseconds ${group} ${downAfterMs}`,
        `sentinel failover-timeout ${group} ${failoverTimeoutMs}`,
      ];
      // A sentinel writes into it.
      await writeFile(file, `${lines.join("\n")}\n`);
      if (asRoot) await chown(file, testUid, testUid);
      return start(file, "--sentinel");
    }),
  );

  const connect = (port: number) =>
    connectValkey({ host: "127.0.0.1", port, connectTimeout: timeoutMs, commandTimeout: timeoutMs });
  async function ask(port: number, command: string, ...args: string[]): Promise<unknown> {
    const client = await connect(port);
    try {
      return await client.call(command, ...args);
    } finally {
      client.disconnect();
    }
  }
  async function primary(): Promise<string | undefined> {
    const reply = (await ask(sentinels[0] ?? 0, "SENTINEL", "get-master-addr-by-name", group)) as string[] | null;
    return reply?.[1];
  }

  const writer = startShortTimeoutWriter(async () => openMembers(await connect(Number(await primary()))));
  return {
    writer,
    primary,
    async settled() {
      const look = async () => {
        const usable = String(await ask(sentinels[0] ?? 0, "SENTINEL", "ckquorum", group)).startsWith("OK 3");
        const reply = String(await ask(Number(await primary()), "INFO", "replication"));
        return usable && /role:master\r\nconnected_slaves:1\r\nslave0:.*state=online/.test(reply);
      };
      await waitUntil("the replica follows and all sentinels agree", look, { everyMs: 200 });
    },
    async strike(fault) {
      if (fault !== "machine stands still") throw new Error(`nobody measured sentinels when ${fault}`);
      const port = await primary();
      const server = servers.find((each) => String(each.port) === port);
      server?.process.signal("SIGSTOP");
      return async () => {
        server?.process.signal("SIGCONT");
        await sleep(2 * failoverTimeoutMs);
      };
    },
    async close() {
      await writer.stop();
      await Promise.all([...watching, ...servers.map(({ process }) => process)].map((each) => each.end("SIGKILL")));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

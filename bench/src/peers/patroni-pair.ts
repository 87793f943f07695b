import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { findBelow, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot, programDirectory, testProgram, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { startTemporaryProcess, type TemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { openRows, startShortTimeoutWriter } from "../support/short-timeout-writer.ts";
import { signalAll } from "../support/signal-all.ts";
import type { FailingPair } from "../support/write-gaps.ts";
import { newPatroniMember, patroniLogin, type PatroniMember, type PatroniTimeouts, startPatroni } from "./patroni.ts";

/** Interval and number of HAProxy's checks for the primary. */
export interface ProxyChecks {
  readonly inter: string;
  readonly fall: number;
  readonly rise: number;
}

/** The checks of Patroni's documentation, and the fastest ones. */
export const documentedChecks: ProxyChecks = { inter: "3s", fall: 3, rise: 2 };
export const quickChecks: ProxyChecks = { inter: "1s", fall: 1, rise: 1 };

interface ClusterMember {
  readonly name: string;
  readonly role: string;
  readonly state: string;
  readonly lag?: number | string;
}

/**
 * Patroni on a primary and a replica, with etcd, behind HAProxy, without TLS. A killed member starts again when it is
 * repaired.
 */
export async function createPatroniPair(
  patroni: string,
  etcd: TestEtcd,
  { timeouts, checks }: { timeouts: PatroniTimeouts; checks: ProxyChecks },
): Promise<FailingPair> {
  const members = [await newPatroniMember("one"), await newPatroniMember("two")];
  const running = new Map<string, TemporaryProcess>();
  const scope = `bench-${members[0]?.port}`;
  async function start(member: PatroniMember): Promise<void> {
    running.set(member.name, await startPatroni(patroni, etcd, member, { scope, timeouts }));
  }
  for (const member of members) await start(member);
  const proxy = await startProxy(members, checks);

  /** The cluster as any member that responds reports it. */
  async function cluster(): Promise<readonly ClusterMember[]> {
    return Promise.any(
      members.map(async ({ rest }) => {
        const answer = await fetch(`http://127.0.0.1:${rest}/cluster`, { signal: AbortSignal.timeout(1_000) });
        return ((await answer.json()) as { members: readonly ClusterMember[] }).members;
      }),
    );
  }
  const primary = async () => (await cluster()).find(({ role }) => role === "leader")?.name;
  async function settled(): Promise<void> {
    const look = async () => {
      const all = await cluster();
      const states = all.map(({ role, state }) => `${role} ${state}`).toSorted();
      const lags = all.map(({ lag = 0 }) => lag);
      return (
        states.join() === "leader running,replica streaming" &&
        lags.every((lag) => typeof lag === "number" && lag < 1 << 20)
      );
    };
    await waitUntil("both members are well", look, {
      withinMs: 180_000,
      everyMs: 200,
      describe: async () => JSON.stringify(await cluster()),
    });
  }

  await settled();
  const writer = startShortTimeoutWriter(() => openRows({ ...patroniLogin, port: proxy.port }));
  await waitUntil("the proxy connects to the primary", () => writer.acknowledgedAt.length > 50);
  return {
    writer,
    primary,
    settled,
    async strike(fault) {
      const leader = await primary();
      const member = members.find(({ name }) => name === leader);
      const process = running.get(leader ?? "");
      if (member === undefined || process === undefined) throw new Error("nobody is the leader");
      switch (fault) {
        case "switchover": {
          const candidate = members.find(({ name }) => name !== leader)?.name;
          const body = JSON.stringify({ leader, candidate });
          // It responds when the switchover is over.
          void fetch(`http://127.0.0.1:${member.rest}/switchover`, { method: "POST", body }).catch(() => undefined);
          return () => undefined;
        }
        case "engine killed":
          killImmediately(await postmaster(process.pid));
          return () => undefined;
        case "machine killed":
          // The first process of a namespace ends all others with it.
          await process.end("SIGKILL");
          return () => start(member);
        case "machine stands still": {
          const pids = [process.pid, ...findBelow(process.pid)];
          signalAll(pids, "SIGSTOP");
          return () => signalAll(pids, "SIGCONT");
        }
      }
    },
    async close() {
      await writer.stop();
      // As the first process of its namespace it takes no other signal.
      await proxy.process.end("SIGKILL");
      await Promise.all([...running.values()].map((process) => process.end("SIGKILL")));
      for (const directory of [proxy.directory, ...members.map((member) => member.directory)])
        await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The postmaster below Patroni. */
async function postmaster(patroni: number): Promise<number> {
  const below = findBelow(patroni);
  const name = async (pid: number) => (await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "")).trim();
  for (const pid of below) if ((await name(pid)) === "postgres" && findBelow(pid).length > 0) return pid;
  throw new Error("Patroni has no PostgreSQL");
}

async function startProxy(members: readonly PatroniMember[], { inter, fall, rise }: ProxyChecks) {
  const directory = programDirectory("bench-haproxy");
  const [port = 0] = await freePorts(1);
  const file = join(directory, "haproxy.cfg");
  const servers = members.map(
    (member) => `  server ${member.name} 127.0.0.1:${member.port} maxconn 100 check port ${member.rest}`,
  );
  await writeFile(
    file,
    `global
  maxconn 100
defaults
  mode tcp
  retries 2
  timeout client 30m
  timeout connect 4s
  timeout server 30m
  timeout check 5s
listen primary
  bind 127.0.0.1:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter ${inter} fall ${fall} rise ${rise} on-marked-down shutdown-sessions
${servers.join("\n")}
`,
    { mode: 0o644 },
  );
  // It prints nothing when it is healthy.
  const argv = ["/bin/sh", "-c", `echo started; exec /usr/sbin/haproxy -db -f ${file}`];
  const launch = testProgram("postgresql", "17").launch({ argv, uid: testUid, binds: [directory], asRoot });
  return { port, directory, process: await startTemporaryProcess(launch, /started/) };
}

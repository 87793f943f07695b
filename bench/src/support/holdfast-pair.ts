import { addressOf, openValkey } from "@holdfast/testing/api/clients.ts";
import { isFailoverCandidate } from "@holdfast/testing/platform/failover-candidate.ts";
import { findBelow, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { createServices, expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { openMysqlRows } from "./mysql-rows.ts";
import { openRows, timeoutMs, type WriteSession, startShortTimeoutWriter } from "./short-timeout-writer.ts";
import { openMembers } from "./sorted-set.ts";
import { signalAll } from "./signal-all.ts";
import type { FailingPair } from "./write-gaps.ts";

const sessions = { postgresql: openSession, valkey: openValkeySession, mysql: openMysqlRows };

/** A service of two nodes, written to over TLS by its name. Replication is asynchronous, except that of MySQL. */
export async function createHoldfastPair(on: Platform, engine: keyof typeof sessions): Promise<FailingPair> {
  const services = createServices(on);
  const mode = engine === "mysql" ? { replication_mode: "sync" } : {};
  const body = { database_type: engine, node_count: 2, ...mode };
  const main = await services.createRunning(`pair-${engine}`, body);
  const { id } = main.service;
  const path = `/managed-services/${id}`;
  const writer = startShortTimeoutWriter(() => sessions[engine](on, main));

  const nodes = async () => (await services.get(id)).nodes;
  const nodeOf = async (role: string) => (await nodes()).find((node) => node.role === role)?.id;
  const states = async () =>
    Promise.all(
      (await nodes()).map(async (node) => {
        const statusPath = `${path}/nodes/${node.id}/replication-status`;
        return on.rest.get<{ connected: boolean; lag_bytes: number }>(statusPath);
      }),
    );
  async function machine() {
    const primary = await nodeOf("primary");
    const found = on.processes().machines.find((each) => each.id === primary);
    if (found?.engine === undefined) throw new Error(`node ${primary} has no engine`);
    return { launcher: found.launcher, engine: found.engine };
  }

  return {
    writer,
    primary: () => nodeOf("primary"),
    async settled() {
      await waitUntil(
        "both nodes are healthy",
        async () =>
          (await states()).every(({ status, json }) => status === 200 && json.connected && json.lag_bytes < 1 << 20),
        { describe: async () => `${JSON.stringify(await states())}\n${await services.describe(id)}` },
      );
      await services.settled(id, "Running");
      // Only a failover candidate can take over from its primary.
      const isCounted = async () => isFailoverCandidate(on.directory, id, (await nodeOf("primary")) ?? "");
      await waitUntil("the replica is a failover candidate", isCounted);
    },
    async strike(fault) {
      if (fault === "switchover") {
        expectStatus(await on.rest.post(`${path}/nodes/${await nodeOf("replica")}/failover`, {}), 202);
        return () => undefined;
      }
      const { launcher, engine: pid } = await machine();
      // Its host restarts a dead machine by itself.
      if (fault !== "machine stands still") {
        killImmediately(fault === "engine killed" ? pid : launcher);
        return () => undefined;
      }
      const pids = [launcher, ...findBelow(launcher)];
      signalAll(pids, "SIGSTOP");
      return () => signalAll(pids, "SIGCONT");
    },
    async close() {
      await writer.stop();
      expectStatus(await on.rest.delete(path), 202);
    },
  };
}

async function openSession(platform: Platform, { connection, password }: RunningService): Promise<WriteSession> {
  const { port, user, database, ca_certificate: ca } = connection;
  const host = await addressOf(platform, connection.host);
  return openRows({ host, port, user, password, database, ssl: { ca, servername: connection.host } });
}

async function openValkeySession(platform: Platform, { connection, password }: RunningService): Promise<WriteSession> {
  return openMembers(await openValkey(platform, connection, { password, timeoutMs }));
}

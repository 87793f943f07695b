import { rmSync } from "node:fs";
import { connect } from "node:net";
import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReplicationStatus } from "@holdfast/sdk";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { OperationJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { isFailoverCandidate } from "@holdfast/testing/platform/failover-candidate.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killAtOnce } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface Login {
  readonly host?: string;
  readonly user?: string;
  readonly password?: string;
}

const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("a MySQL of two nodes in mode sync", () => {
  const writing = new AbortController();
  let platform: Platform;
  let services: Services;
  let shop: RunningService;
  let acknowledged = 0;
  let written: Promise<void>;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    shop = await services.createRunning("shop", {
      database_type: "mysql",
      node_count: 2,
      replication_mode: "sync",
    });
    await ask("CREATE TABLE ledger (n INT PRIMARY KEY)");
    written = write();
  });
  afterAll(async () => {
    writing.abort();
    await platform?.remove();
  });

  const path = (rest: string) => `/managed-services/${shop.service.id}${rest}`;
  const statusOf = async (nodeId: string) =>
    expectStatus(await platform.rest.get<ReplicationStatus>(path(`/nodes/${nodeId}/replication-status`)), 200).json;
  const rolesNow = async () => {
    const { nodes, primary_node_id: primary, term } = await services.get(shop.service.id);
    const replica = nodes.find(({ role }) => role === "replica");
    return { primary, replica: replica?.id ?? "", replicaHost: replica?.hostname ?? "", term };
  };
  const engineOf = (nodeId: string) => platform.processes().machines.find(({ id }) => id === nodeId)?.engine ?? 0;
  const follows = (nodeId: string) =>
    waitUntil("the node follows", async () => (await statusOf(nodeId)).sync_state === "streaming");
  const writesGoOn = async () => {
    const before = acknowledged;
    await waitUntil("writes go on", async () => acknowledged > before + 5);
  };

  async function open({ user = "app_user", password = shop.password, ...login }: Login = {}): Promise<Connection> {
    const { port, ca_certificate: ca } = shop.connection;
    const host = login.host ?? shop.connection.host;
    const stream = connect({ host: await addressOf(platform, host), port });
    const client = await createConnection({
      host,
      user,
      password,
      database: "defaultdb",
      stream,
      ssl: { ca, verifyIdentity: true },
    });
    client.on("error", () => undefined);
    return client;
  }

  async function ask<Row extends object>(sql: string, login?: Login): Promise<Row[]> {
    const client = await open(login);
    try {
      return (await client.query(sql))[0] as Row[];
    } finally {
      client.destroy();
    }
  }

  /** Writes numbers one after another through the service's name; a number without a response is never used again. */
  async function write(): Promise<void> {
    let next = 1;
    while (!writing.signal.aborted) {
      const client = await open().catch(() => undefined);
      const end = () => client?.destroy();
      writing.signal.addEventListener("abort", end);
      try {
        while (client !== undefined && !writing.signal.aborted) {
          const n = next++;
          await client.query(`INSERT INTO ledger VALUES (${n})`);
          numbers.push(n);
          acknowledged = n;
        }
      } catch {
        // A primary that ends closes its sessions.
      } finally {
        writing.signal.removeEventListener("abort", end);
        client?.destroy();
      }
    }
  }
  const numbers: number[] = [];

  it("has a replica that receives rows, reports its lag and accepts no writes", async () => {
    const { primary, replica, replicaHost } = await rolesNow();
    await writesGoOn();
    const count = numbers.length;
    const rows = () => ask<{ count: number }>("SELECT COUNT(*) AS count FROM ledger", { host: replicaHost });
    await waitUntil("rows arrive at the replica", async () => ((await rows())[0]?.count ?? 0) >= count);
    expect(await statusOf(replica)).toMatchObject({ role: "replica", connected: true, sync_state: "streaming" });
    expect(await statusOf(primary)).toMatchObject({ role: "primary", connected: true });
    await expect(ask("INSERT INTO ledger VALUES (0)", { host: replicaHost })).rejects.toThrow("read-only");
  });

  it("has each user on both nodes", async () => {
    const { replicaHost: host } = await rolesNow();
    const reader = { username: "reader", role: "readonly" };
    expectStatus(await platform.rest.post(path("/database-users"), reader), 201);
    const reveal = await platform.rest.post<{ password: string }>(path("/database-users/reader/reveal-password"));
    const { password } = expectStatus(reveal, 200).json;
    const signedIn = () => ask("SELECT 1 AS one", { host, user: "reader", password }).catch(() => []);
    await waitUntil("the user is at the replica", async () => (await signedIn()).length > 0);
  });

  it("promotes the replica in a switchover, and the old primary follows", async () => {
    const { primary, replica, term } = await rolesNow();
    await follows(replica);
    const response = await platform.rest.post<OperationJson>(path(`/nodes/${replica}/failover`), {});
    expectStatus(response, 202);
    await services.settled(shop.service.id, "Running");
    const operation = await platform.rest.get<OperationJson>(`/operations/${response.json.id}`);
    expect(operation.json).toMatchObject({ status: "completed", error: null });
    expect(await rolesNow()).toMatchObject({ primary: replica, replica: primary, term: term + 1 });
    await writesGoOn();
    await follows(primary);
  });

  it("goes on when the engine of its primary is killed", async () => {
    const { primary } = await rolesNow();
    killAtOnce(engineOf(primary));
    await writesGoOn();
  });

  it("fails over when the engine of its primary is killed and has lost its data, which are copied again", async () => {
    const { primary, replica, term } = await rolesNow();
    await follows(replica);
    await waitUntil("the primary counts on its replica", () =>
      isFailoverCandidate(platform.directory, shop.service.id, primary),
    );
    const engine = engineOf(primary);
    rmSync(`/proc/${engine}/cwd/mysql.ibd`);
    killAtOnce(engine);
    await waitUntil("the replica is the primary", async () => {
      const now = await rolesNow();
      return now.primary === replica && now.term > term;
    });
    await writesGoOn();
    await follows(primary);
  });

  it("has every acknowledged row", async () => {
    writing.abort();
    await written;
    const rows = await ask<{ n: number }>("SELECT n FROM ledger");
    const found = new Set(rows.map(({ n }) => n));
    expect(numbers.filter((n) => !found.has(n))).toEqual([]);
    expect(numbers.length).toBeGreaterThan(20);
  });
});

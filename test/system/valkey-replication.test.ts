import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReplicationStatus } from "@holdfast/sdk/index.ts";
import { type AcknowledgedWriter, flushOnWrite, writeValues } from "../faults/acknowledged-writer.ts";
import { commandOnce } from "@holdfast/testing/api/clients.ts";
import { type OperationJson, withPrimary } from "@holdfast/testing/api/service-json.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

/** Script that occupies the engine for ARGV[1] seconds, in which no other client gets a response. */
const runsForSeconds = `local from = redis.call('TIME')[1]
  repeat local now = redis.call('TIME')[1] until now - from >= tonumber(ARGV[1]) return 'done'`;

describe("a Valkey of two nodes", () => {
  const writing = new AbortController();
  let platform: Platform;
  let services: Services;
  let cache: RunningService;
  let writer: AcknowledgedWriter;
  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    cache = await services.createRunning("cache", {
      database_type: "valkey",
      node_count: 2,
      parameters: flushOnWrite,
    });
    writer = writeValues(platform, cache, writing.signal);
  });
  afterAll(async () => {
    writing.abort();
    await platform?.remove();
  });

  const path = (rest: string) => `/managed-services/${cache.service.id}${rest}`;
  const statusOf = async (nodeId: string) =>
    expectStatus(await platform.rest.get<ReplicationStatus>(path(`/nodes/${nodeId}/replication-status`)), 200).json;
  const rolesNow = async () => {
    const { nodes, primary_node_id: primary, term } = withPrimary(await services.get(cache.service.id));
    const replica = nodes.find(({ role }) => role === "replica");
    return { primary, replica: replica?.id ?? "", replicaHost: replica?.hostname ?? "", term };
  };
  const commandsCheck = async () => {
    const { checks } = (await services.get(cache.service.id)).health;
    const all = checks.filter(({ name }) => name === "commands");
    return all.find(({ status }) => status === "degraded") ?? all[0];
  };
  const askReplica = async (command: string, ...args: string[]) => {
    const { replicaHost: host } = await rolesNow();
    return commandOnce(platform, { ...cache.connection, host }, { password: cache.password }, command, ...args);
  };
  const follows = (nodeId: string) =>
    waitUntil("it follows", async () => (await statusOf(nodeId)).sync_state === "streaming");
  const writesContinue = async () => {
    const before = writer.acknowledged;
    await waitUntil("writes continue", async () => writer.acknowledged > before + 5);
  };

  async function failOver(): Promise<void> {
    const { primary, replica, term } = await rolesNow();
    await follows(replica);
    const response = await platform.rest.post<OperationJson>(path(`/nodes/${replica}/failover`), {});
    expect(expectStatus(response, 202).json).toMatchObject({ type: "failover" });
    await services.settled(cache.service.id, "Running");
    const operation = await platform.rest.get<OperationJson>(`/operations/${response.json.id}`);
    expect(operation.json).toMatchObject({ status: "completed", error: null });
    expect(await rolesNow()).toMatchObject({ primary: replica, replica: primary, term: term + 1 });
    await writesContinue();
    await follows(primary);
  }

  it("has a replica that receives writes, reports its lag, and accepts no writes", async () => {
    const { primary, replica } = await rolesNow();
    await writesContinue();
    const written = writer.acknowledged;
    await waitUntil("values arrive at the replica", async () => Number(await askReplica("SCARD", "ledger")) >= written);
    expect(await statusOf(replica)).toMatchObject({ role: "replica", connected: true, sync_state: "streaming" });
    expect(await statusOf(primary)).toMatchObject({ role: "primary", lag_bytes: 0, sync_state: null, connected: true });
    await expect(askReplica("SET", "mine", "1")).rejects.toThrow("READONLY");
  });

  it("has each user on each node once the change is accepted", async () => {
    const { replicaHost: host } = await rolesNow();
    const user = { username: "reader", role: "readonly" };
    expectStatus(await platform.rest.post(path("/database-users"), user), 201);
    const reveal = await platform.rest.post<{ password: string }>(path("/database-users/reader/reveal-password"));
    const { password } = expectStatus(reveal, 200).json;
    const asReader = () =>
      commandOnce(platform, { ...cache.connection, host }, { user: "reader", password }, "SCARD", "ledger");
    expect(Number(await asReader())).toBeGreaterThan(0);
    expectStatus(await platform.rest.delete(path("/database-users/reader")), 204);
    await expect(asReader()).rejects.toThrow("WRONGPASS");
  });

  it("has the same primary after a script that ran longer than a primary may be silent", async () => {
    const { primary, term } = await rolesNow();
    const run = (command: string, ...args: string[]) =>
      commandOnce(platform, cache.connection, { password: cache.password }, command, ...args);
    const script = run("EVAL", runsForSeconds, "0", "8");
    await waitUntil("the script is named in health", async () => (await commandsCheck())?.status === "degraded");
    expect((await commandsCheck())?.reason).toContain("SCRIPT KILL");
    expect(await script).toBe("done");
    await writesContinue();
    await waitUntil("health has no script", async () => (await commandsCheck())?.status === "healthy");
    expect(await rolesNow()).toMatchObject({ primary, term });
  });

  it("promotes the replica, and the old primary becomes its replica", failOver);

  it("switches back to the first primary", failOver);

  it("retains acknowledged writes when its engines are killed", async () => {
    const { replica } = await rolesNow();
    const engines = platform
      .processes()
      .machines.filter(({ id }) => cache.service.nodes.some((node) => node.id === id));
    for (const { engine } of engines) killImmediately(engine ?? 0);
    await writesContinue();
    await follows(replica);
  });

  it("has lost no value that was acknowledged before the kills", async () => {
    writing.abort();
    await writer.done;
    expect(await writer.missing()).toEqual([]);
  });
});

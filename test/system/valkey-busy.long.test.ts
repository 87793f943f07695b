import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { flushOnWrite } from "../faults/acknowledged-writer.ts";
import { commandOnce, openValkey } from "@holdfast/testing/api/clients.ts";
import { type OperationJson, type ProblemJson, withPrimary } from "@holdfast/testing/api/service-json.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { isFailoverCandidate } from "@holdfast/testing/platform/failover-candidate.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const endless = "while true do end";
describe("a Valkey of two nodes whose engine is busy", () => {
  let platform: Platform;
  let services: Services;
  let cache: RunningService;
  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    cache = await services.createRunning("cache", {
      database_type: "valkey",
      node_count: 2,
      parameters: flushOnWrite,
    });
    await run("SET", "kept", "1");
  });
  afterAll(() => platform?.remove());

  const path = (rest: string) => `/managed-services/${cache.service.id}${rest}`;
  const patient = { timeoutMs: 120_000 };

  const run = (command: string, ...args: string[]) =>
    commandOnce(platform, cache.connection, { password: cache.password, ...patient }, command, ...args);
  const rolesNow = async () => {
    const { nodes, primary_node_id: primary, term } = withPrimary(await services.get(cache.service.id));
    const replica = nodes.find(({ role }) => role === "replica");
    return { primary, term, replica: replica?.id ?? "", replicaHost: replica?.hostname ?? "" };
  };
  const isBusy = async () => {
    const { checks } = (await services.get(cache.service.id)).health;
    return checks.some(({ name, status }) => name === "commands" && status === "degraded");
  };
  const untilBusy = () => waitUntil("health reports it", isBusy);
  const untilFree = () => waitUntil("health has recovered", async () => !(await isBusy()));
  const follows = () =>
    waitUntil("the replica follows", async () => {
      const { replica } = await rolesNow();
      const { json } = await platform.rest.get<{ sync_state: string }>(path(`/nodes/${replica}/replication-status`));
      return json.sync_state === "streaming";
    });

  /**
   * Resolves when health reports the script; `kill` uses an older session, as clients query a server when they connect.
   */
  async function begin(script: string, connection = cache.connection) {
    const login = { password: cache.password, ...patient };
    const killer = await openValkey(platform, connection, login);
    const ended = commandOnce(platform, connection, login, "EVAL", script, "0").then(
      String,
      (error: Error) => error.message,
    );
    await untilBusy();
    return {
      ended: ended.finally(() => killer.disconnect()),
      kill: () => killer.call("SCRIPT", "KILL"),
    };
  }

  it("reports changes that wait for the engine, and completes them once the script has ended", async () => {
    const before = await rolesNow();
    await follows();
    const script = await begin(endless);
    const failover = await platform.rest.post<ProblemJson>(path(`/nodes/${before.replica}/failover`), {});
    expect(expectStatus(failover, 503).json.detail).toContain("SCRIPT KILL");
    const stored = await platform.rest.post<{ password: string }>(path("/database-users/app_user/reveal-password"));
    expect(expectStatus(stored, 200).json.password).toBe(cache.password);
    const backup = expectStatus(await platform.rest.post<{ id: string }>(path("/backups")), 202).json;
    const parameters = { "maxmemory-policy": "allkeys-lru" };
    const [user, configuration] = await Promise.all([
      platform.rest.post<{ operation: OperationJson }>(path("/database-users"), { username: "late", role: "readonly" }),
      platform.rest.patch(path("/configuration"), { parameters }),
    ]);
    expectStatus(user, 202);
    expect([200, 202]).toContain(configuration.status);
    expect(await script.kill()).toBe("OK");
    expect(await script.ended).toMatch(/killed/);
    await untilFree();
    await waitUntil("the policy is set", async () =>
      String(await run("INFO", "memory")).includes("maxmemory_policy:allkeys-lru"),
    );
    await waitUntil("the user is created", async () => {
      const { json } = await platform.rest.get<OperationJson>(`/operations/${user.json.operation.id}`);
      return json.status === "completed";
    });
    await services.settled(cache.service.id, "Running");
    await waitUntil("the backup is taken", async () => {
      const { json } = await platform.rest.get<{ status: string }>(path(`/backups/${backup.id}`));
      return json.status === "completed";
    });
    expect(await rolesNow()).toMatchObject({ primary: before.primary, term: before.term });
  });

  it("retains its primary while one command processes much data", async () => {
    const before = await rolesNow();
    await run("EVAL", "for i = 1, 100000 do redis.call('SADD', 'numbers', i) end", "0");
    const slow = run("SUNION", ...Array.from({ length: 1_500 }, () => "numbers"));
    await untilBusy();
    expect(await slow).toHaveLength(100_000);
    await untilFree();
    await follows();
    expect(await rolesNow()).toMatchObject({ primary: before.primary, term: before.term });
    await run("DEL", "numbers");
  });

  it("retains its primary while a replica runs a script of readers", async () => {
    const before = await rolesNow();
    const script = await begin(endless, { ...cache.connection, host: before.replicaHost });
    await run("SET", "meanwhile", "1");
    expect(await script.kill()).toBe("OK");
    await script.ended;
    await follows();
    expect(await rolesNow()).toMatchObject({ primary: before.primary, term: before.term });
  });

  it("fails over from a paused primary, although its replica runs a script", async () => {
    const before = await rolesNow();
    const isCandidate = () => isFailoverCandidate(platform.directory, cache.service.id, before.primary);
    await waitUntil("the primary counts on its replica", isCandidate);
    const script = await begin(endless, { ...cache.connection, host: before.replicaHost });
    const engine = platform.processes().machines.find(({ id }) => id === before.primary)?.engine ?? 0;
    process.kill(engine, "SIGSTOP");
    await waitUntil("the replica is the primary", async () => (await rolesNow()).primary === before.replica);
    expect(await script.ended).toMatch(/killed|closed/);
    await services.settled(cache.service.id, "Running");
    await waitUntil("it answers", async () => (await run("GET", "kept")) === "1");
    await follows();
  });

  it("stops gracefully although a script runs", async () => {
    const script = await begin(endless);
    await services.verb(cache.service.id, "stop");
    await script.ended;
    await services.verb(cache.service.id, "start");
    expect(await run("GET", "kept")).toBe("1");
  });
});

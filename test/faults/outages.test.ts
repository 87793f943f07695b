import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { OrganizationService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { commandOnce, queryOnce } from "../support/clients.ts";
import { resolveName } from "../support/dns-query.ts";
import { type OccupiedPort, occupyPort } from "../support/occupied-port.ts";
import { asOperator } from "../support/organizations.ts";
import { type Platform, startPlatform } from "../support/platform.ts";
import { crashesOf } from "../support/platform-logs.ts";
import { killAtOnce } from "../support/platform-processes.ts";
import { startSecondController } from "../support/second-controller.ts";
import type { ProblemJson, ServiceJson } from "../support/service-json.ts";
import { createServices, expectStatus, type RunningService, type Services } from "../support/services.ts";
import { waitUntil } from "../support/wait-until.ts";
import { changeUnderLocks, endOf } from "./engine-changes.ts";

interface UnderWayJson {
  readonly operation: { readonly id: string };
}

interface Ports {
  readonly api: number;
  readonly agents: number;
  readonly etcd_client: number;
  readonly history: number;
}

/**
 * Shorter than the hour or minute that they stand for, and longer than every lease and time-out that matters. With
 * `npm run faults -- --outages` they are the full minute of the specification.
 */
const outageMs = Number(process.env["HOLDFAST_TEST_OUTAGE_S"] ?? 20) * 1_000;

describe("an outage", () => {
  let platform: Platform;
  let services: Services;
  let database: RunningService;
  let cache: RunningService;
  let ports: Ports;
  let proofs = 0;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    [database, cache] = await Promise.all([
      services.createRunning("database"),
      services.createRunning("cache", { database_type: "valkey" }),
    ]);
    await ask("CREATE TABLE kept AS SELECT 1 AS turn");
    ports = JSON.parse(readFileSync(join(platform.directory, "installation.json"), "utf8")).ports;
  });
  afterAll(() => platform?.remove());
  // One that failed in the middle of its outage fails alone.
  beforeEach(() =>
    waitUntil(
      "the platform is well",
      async () => {
        const found = await Promise.all([database, cache].map(({ service }) => services.get(service.id)));
        return found.every(
          ({ status, operation, health }) => status === "Running" && operation === null && health.status === "healthy",
        );
      },
      { withinMs: 120_000, describe: () => services.describe(database.service.id) },
    ),
  );

  const path = (rest = "") => `/managed-services/${database.service.id}${rest}`;
  const ask = (sql: string) => queryOnce<{ turn: number }>(platform, database.connection, database, sql);
  const machineOf = ({ service }: RunningService) =>
    platform.processes().machines.find(({ id }) => id === service.nodes[0]?.id);
  const engines = () => [database, cache].map((running) => machineOf(running)?.engine);

  /** Both services answer, found by name. */
  async function serve(): Promise<void> {
    expect(await ask("SELECT turn FROM kept LIMIT 1")).toHaveLength(1);
    expect(await commandOnce(platform, cache.connection, cache, "PING")).toBe("PONG");
  }

  async function works(): Promise<void> {
    const change = { tags: { at: new Date().toISOString() } };
    const look = async () => (await platform.rest.patch(path(), change)).status === 200;
    await waitUntil("the API takes changes", look, { everyMs: 200 });
    await services.settled(database.service.id, "Running");
    proofs += 1;
    const { id } = await services.create(`proof-${proofs}`, { database_type: "valkey" });
    await services.settled(id, "Running");
    await services.delete(id);
  }

  afterEach(() => {
    expect(crashesOf(platform.directory)).toEqual([]);
  });

  const kill = (pids: () => readonly (number | undefined)[]) => () => {
    for (const pid of pids()) if (pid !== undefined) killAtOnce(pid);
  };

  it("of etcd: services serve, the API answers 503, and all goes on without a restart of anything", async () => {
    const before = { engines: engines(), controllers: platform.processes().controllers };
    const port = await occupyPort(
      ports.etcd_client,
      kill(() => [platform.processes().etcd]),
    );
    try {
      const until = Date.now() + outageMs;
      while (Date.now() < until) {
        const change = await platform.rest.patch<ProblemJson>(path(), { tags: { during: "outage" } });
        expect(expectStatus(change, 503).json.code).toBe("store_unavailable");
        expect(Number(change.headers["retry-after"])).toBeGreaterThan(0);
        const create = { name: "none", database_type: "valkey", plan_name: "tier-1", storage_size_gb: 1 };
        expectStatus(await platform.rest.post("/managed-services", create), 503);
        expect([200, 503]).toContain((await platform.rest.get(path())).status);
        await serve();
        await sleep(500);
      }
    } finally {
      await port.release();
    }
    await works();
    expect({ engines: engines(), controllers: platform.processes().controllers }).toEqual(before);
  });

  it("of history: changes are taken, and their audit arrives when it is back", async () => {
    const port = await occupyPort(
      ports.history,
      kill(() => [platform.processes().history]),
    );
    const tag = `history-${Date.now()}`;
    try {
      expectStatus(await platform.rest.patch(path(), { tags: { tag } }), 200);
      // A reveal is on record before it is answered, or it is not answered.
      const reveal = await platform.rest.post(path("/database-users/app_user/reveal-password"));
      expectStatus(reveal, 503);
      await sleep(2_000);
    } finally {
      await port.release();
    }
    await asOperator(platform, OrganizationService, (rpcs) =>
      waitUntil(
        "the audit has the change",
        async () => {
          const { entries } = await rpcs.listAuditEntries({ page: { limit: 10 } });
          const recent = ({ seconds }: { seconds: bigint }) =>
            Number(seconds) * 1_000 >= Number(tag.split("-")[1]) - 1_000;
          return entries.some(({ action, time }) => action === "managed-service.update" && time && recent(time));
        },
        { everyMs: 200 },
      ),
    );
    expectStatus(await platform.rest.post(path("/database-users/app_user/reveal-password")), 200);
  });

  it("of controllers and etcd: names resolve, services serve, and a killed engine is back by itself", async () => {
    const held: OccupiedPort[] = [];
    try {
      held.push(
        await occupyPort(
          ports.etcd_client,
          kill(() => [platform.processes().etcd]),
        ),
      );
      held.push(
        await occupyPort(
          ports.api,
          kill(() => platform.processes().controllers),
        ),
      );
      held.push(
        await occupyPort(
          ports.agents,
          kill(() => platform.processes().controllers),
        ),
      );
      // One that is started meanwhile waits for etcd and is there when it comes.
      let seen: number | undefined;
      const waiting = await waitUntil(
        "a controller is started anew and stays",
        () => {
          const [now] = platform.processes().controllers;
          const stays = now !== undefined && now === seen;
          seen = now;
          return stays && now;
        },
        { everyMs: 1_000 },
      );
      killAtOnce(machineOf(database)?.engine ?? 0);
      await waitUntil("the killed engine is back", async () => (await ask("SELECT turn FROM kept")).length === 1, {
        withinMs: 15_000,
      });
      const until = Date.now() + outageMs / 2;
      while (Date.now() < until) {
        await serve();
        await sleep(500);
      }
      // A DNS server that is started meanwhile answers from its disk.
      killAtOnce(platform.processes().dns ?? 0);
      await waitUntil("names resolve again", async () => {
        return (await resolveName(platform.admin.dns_server, database.connection.host)).length === 1;
      });
      await serve();
      expect(platform.processes().controllers).toEqual([waiting]);
    } finally {
      for (const port of held) await port.release();
    }
    const before = engines();
    await waitUntil("the API is back", async () => (await platform.rest.get(path())).status === 200, {
      everyMs: 200,
    });
    await works();
    expect(engines()).toEqual(before);
  });

  it("of an agent: the engine serves, what needs the agent waits for it, and nothing is started twice", async () => {
    const machine = machineOf(database);
    const begun: string[] = [];
    const until = Date.now() + outageMs;
    process.kill(machine?.agent ?? 0, "SIGSTOP");
    const asked = Promise.all([
      platform.rest.post<UnderWayJson>(path("/database-users"), { username: "late", role: "readonly" }),
      platform.rest.post<UnderWayJson>(path("/databases"), { name: "late" }),
    ]);
    // Nobody looks at them when the test fails before.
    asked.catch(() => undefined);
    try {
      while (Date.now() < until) {
        await serve();
        const { status } = await services.get(database.service.id);
        expect(status).toBe("Running");
        await sleep(1_000);
      }
      for (const answer of await asked) begun.push(expectStatus(answer, 202).json.operation.id);
      // By now it is known that nobody answers: nothing is begun any more.
      const { json } = expectStatus(await platform.rest.post<ProblemJson>(path("/databases"), { name: "later" }), 503);
      expect(json.code).toBe("machine_unreachable");
      const { health } = await services.get(database.service.id);
      expect(health.status).not.toBe("healthy");
    } finally {
      process.kill(machine?.agent ?? 0, "SIGCONT");
    }
    await waitUntil(
      "the service is healthy again",
      async () => (await services.get(database.service.id)).health.status === "healthy",
      { everyMs: 200, describe: () => services.describe(database.service.id) },
    );
    expect(machineOf(database)).toEqual(machine);
    for (const id of begun) expect(await endOf(platform, id)).toMatchObject({ status: "completed" });
    // What was told to be under way is done, what was told to have failed is not.
    const { databases } = (await platform.rest.get<{ databases: { name: string }[] }>(path("/databases"))).json;
    expect(databases.map(({ name }) => name)).toEqual(["defaultdb", "late"]);
    const { users } = (await platform.rest.get<{ users: { username: string }[] }>(path("/database-users"))).json;
    expect(users.map(({ username }) => username)).toEqual(["app_user", "late"]);
    expectStatus(await platform.rest.delete(path("/databases/late")), 204);
    expectStatus(await platform.rest.delete(path("/database-users/late")), 204);
  });

  it("of what users and databases are changed by: each change ends as the engine has it", async () => {
    await changeUnderLocks(platform, database);
  });

  it("of one controller of two: the other takes over its keys and agents, and no engine restarts", async () => {
    const before = engines();
    const second = await startSecondController(platform);
    const held: OccupiedPort[] = [];
    try {
      const others = createServices(platform, second.rest);
      expect((await others.get(database.service.id)).name).toBe("database");
      const { id } = await others.create("through-second", { database_type: "valkey" });
      await services.settled(id, "Running");

      held.push(
        await occupyPort(
          ports.api,
          kill(() => platform.processes().controllers),
        ),
      );
      held.push(
        await occupyPort(
          ports.agents,
          kill(() => platform.processes().controllers),
        ),
      );
      const made = await others.create("after-take-over", { database_type: "valkey" });
      const running = await others.settled(made.id, "Running");
      expect(running.nodes[0]?.status).toBe("Running");
      // The agents of the dead one have found the living one.
      await waitUntil("a user can be made", async () => {
        const body = { username: "taken_over", role: "readonly" };
        const users = `/managed-services/${database.service.id}/database-users`;
        const answer = await second.rest.post<UnderWayJson>(users, body);
        // The engine has it later than the answer waits for.
        if (answer.status !== 202) return expectStatus(answer, 201);
        expect(await endOf(second, answer.json.operation.id)).toMatchObject({ status: "completed" });
        return true;
      });
      for (const port of held.splice(0)) await port.release();
      await waitUntil("the first controller is back", async () => (await platform.rest.get(path())).status === 200, {
        everyMs: 200,
      });
      for (const gone of [id, made.id]) expectStatus(await platform.rest.delete(`/managed-services/${gone}`), 202);
      for (const gone of [id, made.id]) await services.gone(gone);
    } finally {
      for (const port of held) await port.release();
      await second.stop();
    }
    await works();
    expect(engines()).toEqual(before);
  });

  it("of everything at once: the same services come back with the same data", async () => {
    const stopped = await services.createRunning("stopped", { database_type: "valkey" });
    await services.verb(stopped.service.id, "stop");
    await ask("INSERT INTO kept VALUES (2)");
    const before = await platform.rest.get<{ services: ServiceJson[] }>("/managed-services");
    await platform.kill9();
    await platform.start();
    const same = ({ services: list }: { services: ServiceJson[] }) =>
      list.map(({ id, name, hostname, status, tags }) => ({ id, name, hostname, status, tags }));
    const after = await platform.rest.get<{ services: ServiceJson[] }>("/managed-services");
    expect(same(after.json)).toEqual(same(before.json));
    for (const { service } of [database, cache]) {
      const look = async () => (await services.get(service.id)).health.status === "healthy";
      await waitUntil("it is healthy again", look, { describe: () => services.describe(service.id) });
    }
    // Who is told that a service is healthy finds it so, though the store still said it of the engines of before.
    await serve();
    expect((await ask("SELECT turn FROM kept ORDER BY turn")).map(({ turn }) => turn)).toEqual([1, 2]);
    expect(machineOf(stopped)).toBeUndefined();
    await works();
    await services.verb(stopped.service.id, "start");
    await services.delete(stopped.service.id);
  });
});

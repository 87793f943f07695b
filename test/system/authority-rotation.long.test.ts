import { readFileSync } from "node:fs";
import { AuthorityService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandOnce, queryOnce } from "@holdfast/testing/api/clients.ts";
import { type GrpcCalls, withGrpc } from "@holdfast/testing/api/grpc-calls.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { createRest } from "@holdfast/testing/api/rest.ts";
import type { ConnectionJson } from "@holdfast/testing/api/service-json.ts";
import { createServices, expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

describe("the rotation of the certificate authority", () => {
  let platform: Platform;
  let database: RunningService;
  let cache: RunningService;

  beforeAll(async () => {
    // Two minutes: renewals happen within one test.
    platform = await startPlatform({ environment: { HOLDFAST_MACHINE_CERTIFICATE_S: "120" } });
    const services = createServices(platform);
    [database, cache] = await Promise.all([
      services.createRunning("database"),
      services.createRunning("cache", { database_type: "valkey" }),
    ]);
    await queryOnce(platform, database.connection, database, "CREATE TABLE written (at timestamptz)");
  });
  afterAll(() => platform?.remove());

  const trusted = () => readFileSync(platform.admin.ca_file, "utf8");
  const withAuthority = <T>(run: (rpcs: GrpcCalls<typeof AuthorityService>) => Promise<T>) => {
    const target = { url: platform.admin.grpc_url, ca: trusted(), authorization: platform.operator };
    return withGrpc(target, AuthorityService, run);
  };

  /** A client that reads its trust bundle before each connection. */
  async function connectionOf({ service }: RunningService): Promise<ConnectionJson> {
    const { base_url: baseUrl } = platform.admin;
    const rest = createRest({ baseUrl, ca: trusted(), authorization: platform.owner });
    try {
      return expectStatus(await rest.get<ConnectionJson>(`/managed-services/${service.id}/connection`), 200).json;
    } finally {
      rest.close();
    }
  }

  /** A new authority is not active before every machine has it, however quick the others are. */
  async function whileAgentsPaused<T>(run: () => Promise<T>): Promise<T> {
    const agents = platform.processes().machines.flatMap((machine) => machine.agents);
    for (const pid of agents) killImmediately(pid, "SIGSTOP");
    try {
      return await run();
    } finally {
      for (const pid of agents) killImmediately(pid, "SIGCONT");
    }
  }

  type WhereToFind = (running: RunningService) => ConnectionJson | Promise<ConnectionJson>;

  async function write(find: WhereToFind): Promise<void> {
    await queryOnce(platform, await find(database), database, "INSERT INTO written VALUES (now())");
    await commandOnce(platform, await find(cache), cache, "INCR", "written");
  }

  /** Writes into both by new connections, repeatedly, until it is stopped. */
  function startWriting(find: WhereToFind) {
    const failures: string[] = [];
    let written = 0;
    let isStopped = false;
    const writing = (async () => {
      while (!isStopped) {
        try {
          await write(find);
          written += 1;
        } catch (error) {
          failures.push(String(error));
        }
      }
    })();
    return {
      failures,
      async goesOn(): Promise<void> {
        const writtenThen = written;
        await waitUntil("writes continue", () => written >= writtenThen + 5);
      },
      stop(): Promise<void> {
        isStopped = true;
        return writing;
      },
    };
  }

  it("fails no new connection, and removes the old one completely", async () => {
    const before = await withAuthority((rpcs) => rpcs.getAuthority({}));
    expect(before).toMatchObject({ rotation: "idle", trusted: [{ signs: true }], behindCount: 0 });
    const writer = startWriting(connectionOf);
    const state = async () => (await withAuthority((rpcs) => rpcs.getAuthority({}))).rotation;
    try {
      await whileAgentsPaused(async () => {
        expect(await withAuthority((rpcs) => rpcs.rotateAuthority({ overlapHours: 0 }))).toMatchObject({
          rotation: "spreading",
          trusted: [{ signs: true }, { signs: false }],
        });
        await expect(withAuthority((rpcs) => rpcs.rotateAuthority({}))).rejects.toThrow(
          "A rotation is in progress (spreading)",
        );
      });
      await waitUntil("the new one signs", async () => (await state()) !== "spreading", { everyMs: 10 });
      await expect(withAuthority((rpcs) => rpcs.cancelAuthorityRotation({}))).rejects.toThrow(
        /cannot be canceled|no rotation to cancel/,
      );
      await waitUntil("the old one is dropped", async () => (await state()) === "idle", { everyMs: 200 });
      await writer.goesOn();
    } finally {
      await writer.stop();
    }
    expect(writer.failures).toEqual([]);
    const after = await withAuthority((rpcs) => rpcs.getAuthority({}));
    expect(after.trusted).toHaveLength(1);
    expect(after.trusted[0]?.fingerprint).not.toBe(before.trusted[0]?.fingerprint);
    expect((await connectionOf(database)).ca_certificate).toBe(trusted());
    await expect(queryOnce(platform, database.connection, database, "SELECT 1")).rejects.toThrow(/certificate/);
  });

  it("completes, and fails no new connection, when controller and agents are killed at each of its stages", async () => {
    const before = await withAuthority((rpcs) => rpcs.getAuthority({}));
    // Controllers restart during the rotation, so the client uses the service's address that it already has.
    const here = ({ connection }: RunningService) => ({ ...connection, ca_certificate: trusted() });
    const writer = startWriting(here);
    const state = () =>
      withAuthority((rpcs) => rpcs.getAuthority({})).then(
        ({ rotation }) => rotation,
        () => undefined,
      );
    const killAll = () => {
      const { controllers, machines } = platform.processes();
      for (const pid of [...controllers, ...machines.flatMap(({ agents }) => agents)]) killImmediately(pid);
    };
    const engines = () => {
      const { machines } = platform.processes();
      const nodes = [database, cache].map(({ service }) => service.nodes[0]?.id);
      return nodes.map((node) => machines.find(({ id }) => id === node)?.engine);
    };
    const enginesBefore = engines();
    try {
      await withAuthority((rpcs) => rpcs.rotateAuthority({ overlapHours: 0 }));
      killAll();
      await waitUntil("the new one signs", async () => ["renewing", "idle"].includes((await state()) ?? ""), {
        withinMs: 120_000,
        everyMs: 100,
      });
      killAll();
      await waitUntil("the old one is dropped", async () => (await state()) === "idle", {
        withinMs: 120_000,
        everyMs: 200,
      });
      await writer.goesOn();
    } finally {
      await writer.stop();
    }
    expect(writer.failures).toEqual([]);
    expect(engines()).toEqual(enginesBefore);
    const after = await withAuthority((rpcs) => rpcs.getAuthority({}));
    expect(after).toMatchObject({ trusted: [{ signs: true }], behindCount: 0 });
    expect(after.trusted[0]?.fingerprint).not.toBe(before.trusted[0]?.fingerprint);
  }, 300_000);

  it("is aborted while the old one signs", async () => {
    const [remaining] = (await withAuthority((rpcs) => rpcs.getAuthority({}))).trusted;
    const { rotation, trusted: afterAbort } = await whileAgentsPaused(async () => {
      await withAuthority((rpcs) => rpcs.rotateAuthority({ overlapHours: 1 }));
      return withAuthority((rpcs) => rpcs.cancelAuthorityRotation({}));
    });
    expect({ rotation, left: afterAbort.map(({ fingerprint }) => fingerprint) }).toEqual({
      rotation: "idle",
      left: [remaining?.fingerprint],
    });
    await write(connectionOf);
  });
});

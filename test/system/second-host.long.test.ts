import { readFileSync } from "node:fs";
import { join } from "node:path";
import { addressNetworkOf, overlap } from "@holdfast/compute/local/address-network.ts";
import { parseJoinFile } from "@holdfast/common/join-file.ts";
import { type Host, HostService } from "@holdfast/proto/holdfast/admin/v1/host_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MaintenanceService } from "@holdfast/proto/holdfast/admin/v1/maintenance_pb.ts";
import { type ChangingImages, createChangingImages } from "@holdfast/testing/machines/changing-images.ts";
import { commandOnce, queryOnce } from "@holdfast/testing/api/clients.ts";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import { type GrpcCalls, withGrpc } from "@holdfast/testing/api/grpc-calls.ts";
import { createMaintenanceRequests } from "@holdfast/testing/machines/maintenance-requests.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { lastLogLines, logFiles } from "@holdfast/testing/platform/platform-logs.ts";
import { isAlive, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import type { RestResponse } from "@holdfast/testing/api/rest-response.ts";
import { testPublicNetwork } from "@holdfast/testing/network/public-network.ts";
import { newSecondHost, type SecondHost } from "@holdfast/testing/platform/second-host.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { createServices, expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

describe("a second host that joined by a file", () => {
  let platform: Platform;
  let host: SecondHost;
  let database: RunningService;
  let token = "";
  /** Response to a request before any host had joined. */
  let earlyRequest: RestResponse<unknown>;
  let network = "";
  let images: ChangingImages;
  let environment: Record<string, string> = {};

  beforeAll(async () => {
    images = createChangingImages({ looksOlder: false });
    environment = { HOLDFAST_CACHE: images.cache };
    // The controllers have no machines themselves.
    platform = await startPlatform({ flags: ["--provider", "none"], environment });
    host = newSecondHost();
    const [port] = await freePorts(1);
    const added = { hostId: "second", zone: "east", address: `127.0.0.1:${port}` };
    const { joinFile } = await hosts((rpcs) => rpcs.addHost(added));
    ({ token } = parseJoinFile(joinFile));
    const request = { name: "early", database_type: "postgresql", plan_name: "tier-1", storage_size_gb: 1 };
    earlyRequest = await platform.rest.post("/managed-services", request);
    network = await testPublicNetwork();
    await host.start(joinFile, ["--public-addresses", network], environment);
    await hostIs(({ state }) => state === "ready");
    database = await createServices(platform).createRunning("far");
  });
  afterAll(async () => {
    await host?.remove();
    await platform?.remove();
    images?.close();
  });

  const hosts = <T>(run: (rpcs: GrpcCalls<typeof HostService>) => Promise<T>) => {
    const target = { url: platform.admin.grpc_url, ca: platform.ca, authorization: platform.operator };
    return withGrpc(target, HostService, run);
  };
  const second = { hostId: "second" };
  const hostIs = (test: (found: Host) => boolean) =>
    waitUntil("the host is as it should be", () => hosts(async (rpcs) => test(await rpcs.getHost(second))), {
      everyMs: 250,
      describe: () => lastLogLines(platform.directory, 20, "host"),
    });

  const count = async () => {
    const sql = "INSERT INTO written DEFAULT VALUES RETURNING (SELECT count(*)::int FROM written) AS before";
    const [row] = await queryOnce<{ before: number }>(platform, database.connection, database, sql);
    return row?.before;
  };

  it("has all machines when the controllers' host takes none; services wait until it has joined", async () => {
    expect(earlyRequest.status).toBe(400);
    expect(earlyRequest.text).toContain("cannot run here");
    const { hosts: all } = await hosts((rpcs) => rpcs.listHosts({}));
    expect(all.map(({ id }) => id)).toEqual(["second"]);
    expect(database.service).toMatchObject({ zone: "east" });
  });

  it("runs the services of its zone on its own addresses, with verified certificates by name", async () => {
    await queryOnce(platform, database.connection, database, "CREATE TABLE written (at timestamptz DEFAULT now())");
    expect(await count()).toBe(0);
    expect(host.processes().machines).toHaveLength(1);
    expect(platform.processes().machines).toHaveLength(0);
    const { loopback_block: block } = JSON.parse(readFileSync(join(host.directory, "installation.json"), "utf8"));
    const { connection } = database;
    const [address] = await resolveName(platform.admin.dns_server, connection.private_host);
    expect(address?.startsWith(`${block}.`)).toBe(true);
    // The public address is in its own network.
    const [publicAddress = ""] = await resolveName(platform.admin.dns_server, connection.host);
    expect(overlap(addressNetworkOf(`${publicAddress}/32`), addressNetworkOf(network))).toBe(true);
    await hostIs((found) => found.publicAddressesFree === 13);
    const found = await hosts((rpcs) => rpcs.getHost(second));
    expect(found).toMatchObject({ publicAddresses: network, publicAddressesTotal: 14 });
  });

  it("retains its machines when its program is killed, and adopts them when it is back", async () => {
    const before = host.program();
    const [machine] = host.processes().machines;
    killImmediately(before ?? 0);
    expect(await count()).toBe(1);
    await waitUntil("another program serves", () => {
      const now = host.program();
      return now !== undefined && now !== before;
    });
    await waitUntil("controllers have it again", hasLogged('"msg":"host connected"', 2), {
      describe: () => lastLogLines(platform.directory, 20, "host"),
    });
    expect(await count()).toBe(2);
    const [after] = host.processes().machines;
    expect(after).toEqual(machine);
    expect(isAlive(machine?.engine ?? 0)).toBe(true);
  });

  it("continues where it was after a stop, without a token", async () => {
    await host.stop();
    expect(host.processes().machines).toEqual([]);
    await host.start(undefined, [], environment);
    await waitUntil("the service answers", count, { everyMs: 200, describe: () => lastLogLines(host.directory, 20) });
    expect(await count()).toBe(4);
  });

  describe("with services to maintain there", () => {
    let cache: RunningService;
    const services = () => createServices(platform);
    beforeAll(async () => {
      cache = await services().createRunning("cache", { database_type: "valkey" });
    });
    afterAll(() => services().delete(cache.service.id));

    const requests = () => createMaintenanceRequests(platform, services());
    const path = ({ service }: RunningService, rest: string) => `/managed-services/${service.id}${rest}`;
    const maintenanceOf = ({ service }: RunningService) => requests().get(service.id);
    const pending = ({ service }: RunningService, update: string) => requests().pending(service.id, update);
    const run = (command: string, ...args: string[]) =>
      commandOnce(platform, cache.connection, { password: cache.password }, command, ...args);

    it("rejects an image that only another host has, and operators see which host lacks it", async () => {
      const imagesOfHost = createChangingImages({ looksOlder: false });
      const thirdHost = newSecondHost();
      const behind = async () =>
        (await asOperator(platform, MaintenanceService, (rpcs) => rpcs.listMaintenance({}))).services;
      try {
        images.hide(images.valid);
        await imagesOfHost.choose(images.valid);
        const [port] = await freePorts(1);
        const added = { hostId: "late", zone: "west", address: `127.0.0.1:${port}` };
        const { joinFile } = await hosts((rpcs) => rpcs.addHost(added));
        await thirdHost.start(joinFile, [], { HOLDFAST_CACHE: imagesOfHost.cache });
        const waits = await waitUntil("both wait for it", async () => {
          const waiting = (await behind()).filter(({ awaitedImage }) => awaitedImage === images.valid);
          return waiting.length === 2 && waiting;
        });
        for (const { updateIds, awaitedReason } of waits) {
          expect(updateIds).toEqual([]);
          expect(awaitedReason).toMatch(/^The image is missing on second: run holdfast images update trixie there/);
        }
        const { images: all } = await asOperator(platform, MaintenanceService, (rpcs) => rpcs.listImages({}));
        expect(all.find(({ id }) => id === images.valid)).toMatchObject({ missingOn: ["second"], services: 0 });
        const response = await requests().apply(cache.service.id, { update_ids: [images.valid] });
        expect(response.status).toBe(400);
        images.restore(images.valid);
        for (const service of [cache, database]) await pending(service, images.valid);
        expect((await behind()).map(({ awaitedImage }) => awaitedImage)).toEqual(["", ""]);
      } finally {
        await thirdHost.remove();
        await hosts((rpcs) => rpcs.removeHost({ hostId: "late" }));
        imagesOfHost.close();
      }
    }, 120_000);

    it("applies an urgent image to all, with data and pending parameters, though the host program is killed", async () => {
      expect(await run("SET", "kept", "before")).toBe("OK");
      const rows = await count();
      const change = { parameters: { "io-threads": "2" } };
      expectStatus(await platform.rest.patch(path(cache, "/configuration"), change), 200);
      await images.choose(images.valid);
      for (const service of [cache, database]) await pending(service, images.valid);
      await pending(cache, "restart");
      await asOperator(platform, MaintenanceService, (rpcs) =>
        rpcs.markImageUrgent({ image: images.valid, noticeHours: 0, reason: "it must go" }),
      );
      await waitUntil("one of them is at it", async () => {
        const both = [await services().get(cache.service.id), await services().get(database.service.id)];
        return both.some(({ operation }) => operation?.type === "maintenance");
      });
      const program = host.program();
      if (program === undefined) throw new Error("the host's program does not run");
      killImmediately(program);
      for (const service of [cache, database]) {
        const { id } = service.service;
        await waitUntil(
          `${service.service.name} has the image`,
          async () => (await maintenanceOf(service)).updates.length === 0,
          {
            withinMs: 180_000,
            describe: () => services().describe(id),
          },
        );
        await services().settled(id, "Running");
        expect((await maintenanceOf(service)).image).toBe(images.valid);
        const last = (await services().operations(id)).filter(({ type }) => type === "maintenance");
        expect(last).toMatchObject([{ status: "completed" }]);
      }
      expect(await run("GET", "kept")).toBe("before");
      expect(await count()).toBe((rows ?? 0) + 1);
      type Parameters = { parameters: Record<string, { value: string; status: string }> };
      const { json } = await platform.rest.get<Parameters>(path(cache, "/configuration"));
      expect(json.parameters["io-threads"]).toMatchObject({ value: "2", status: "applied" });
    }, 300_000);

    it("rolls back an image without an engine, with all its data, and avoids it later", async () => {
      await images.choose(images.broken);
      await pending(cache, images.broken);
      const response = await requests().apply(cache.service.id);
      const { id } = expectStatus(response, 202).json;
      const ended = await requests().ended(cache.service.id, id);
      expect(ended.error).toMatchObject({ code: "rolled_back_engine_failed" });
      await services().settled(cache.service.id, "Running");
      expect(await maintenanceOf(cache)).toMatchObject({
        image: images.valid,
        updates: [{ id: images.broken, apply_at: null }],
      });
      expect(await run("GET", "kept")).toBe("before");
      expect(await run("SET", "kept", "after")).toBe("OK");
    }, 240_000);
  });

  it("stops services with their only node there on request, and starts them when it is uncordoned", async () => {
    const services = createServices(platform);
    const { id } = database.service;
    await hosts((rpcs) => rpcs.drainHost(second));
    await hostIs(({ drain }) => drain?.state === "blocked" && drain.waitsFor[0]?.serviceId === id);
    const rows = (await count()) ?? 0;
    await expect(hosts((rpcs) => rpcs.removeHost(second))).rejects.toThrow(new RegExp(`Delete the services ${id}`));
    const unplaced = await services.create("nowhere", { zone: "east" });
    await services.settled(unplaced.id, "Error");
    expect((await services.get(unplaced.id)).error).toMatchObject({
      message: expect.stringContaining("second: it is being drained"),
    });
    await services.delete(unplaced.id);

    await hosts((rpcs) => rpcs.drainHost({ ...second, stopSingleNodes: true }));
    const stopped = await services.settled(id, "Stopped");
    await hostIs(({ drain }) => drain?.state === "drained" && drain.left === 0);
    expect(stopped.health.reason).toMatch(/stopped for maintenance of its host/);
    expect(host.processes().machines).toEqual([]);
    const [controller = 0] = platform.processes().controllers;
    killImmediately(controller);
    await waitUntil("another controller serves", () =>
      platform.processes().controllers.some((pid) => pid !== controller),
    );
    await hostIs(({ drain }) => drain?.state === "drained");

    await hosts((rpcs) => rpcs.uncordonHost(second));
    await services.settled(id, "Running");
    expect(await count()).toBe(rows + 1);
    await hostIs(({ drain, cordoned }) => drain?.state === "none" && !cordoned);
  });

  it("leaves its token in no log", () => {
    for (const file of [...logFiles(platform.directory), ...logFiles(host.directory)])
      expect(readFileSync(file, "utf8")).not.toContain(token);
    expect(host.output).not.toContain(token);
  });

  /** True if the controller's log has this message at least `times` times. */
  function hasLogged(what: string, times: number) {
    return () => {
      const log = readFileSync(join(platform.directory, "log", "controller.log"), "utf8");
      return log.split(what).length > times;
    };
  }
});

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createIncusClient, type IncusClient } from "@holdfast/compute/incus/incus-client.ts";
import { incusDirectory, incusSocket } from "@holdfast/local/incus-daemon.ts";
import { addressBlockOf } from "@holdfast/local/incus-host.ts";
import { type Host, HostService } from "@holdfast/proto/holdfast/admin/v1/host_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CabledNetwork, makeCabledNetwork } from "@holdfast/testing/network/cabled-network.ts";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import type { GrpcCalls } from "@holdfast/testing/api/grpc-calls.ts";
import { daemonOf, firstProcessOf, incusMissing, openIncusOf } from "@holdfast/testing/machines/incus-machines.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { lastLogLines } from "@holdfast/testing/platform/platform-logs.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { newSecondHost, type SecondHost } from "@holdfast/testing/platform/second-host.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const run = promisify(execFile);
const signal = AbortSignal.timeout(1_800_000);
const missing =
  process.env["HOLDFAST_TEST_HOSTS"] === "1" ? await incusMissing() : "it takes minutes: npm run faults -- --hosts";

/** The controllers' host, and one with a separate daemon, network and mounts; both in one zone. */
describe.skipIf(missing !== undefined)(
  `two hosts with machines of Incus${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    let network: CabledNetwork;
    let platform: Platform;
    let host: SecondHost;
    let services: Services;
    let incus: { readonly local: IncusClient; readonly second: IncusClient };
    let block = "";
    let near: RunningService;
    let far: RunningService;

    beforeAll(async () => {
      network = await makeCabledNetwork();
      platform = await startPlatform({ flags: ["--provider", "incus", "--advertise", network.near] });
      services = createServices(platform);
      host = newSecondHost(network.enter);
      const [port] = await freePorts(1);
      // Capacity for two machines of 2 GiB, and not for three.
      const { memoryTotalBytes } = await getHost("local");
      const memoryOvercommit = (5 * 1024 ** 3) / Number(memoryTotalBytes);
      const added = { hostId: "second", zone: "local", address: `${network.far}:${port}`, memoryOvercommit };
      const { joinFile } = await hosts((rpcs) => rpcs.addHost(added));
      await host.start(joinFile, ["--provider", "incus"]);
      const { loopback_block } = JSON.parse(readFileSync(join(host.directory, "installation.json"), "utf8"));
      block = addressBlockOf(loopback_block);
      const number = loopback_block.split(".")[1];
      const socket = incusSocket(incusDirectory(number));
      incus = { local: openIncusOf(platform), second: createIncusClient({ socket }, `holdfast-${number}`) };
      await hostIs(({ state }) => state === "ready");
    });
    afterAll(async () => {
      await network?.cable(true);
      await Promise.all([incus?.local.close(), incus?.second.close()]);
      await host?.clean();
      await host?.remove();
      await platform?.remove();
      await network?.close();
    });

    const hosts = <T>(use: (rpcs: GrpcCalls<typeof HostService>) => Promise<T>) =>
      asOperator(platform, HostService, use);
    const getHost = (hostId: string) => hosts((rpcs) => rpcs.getHost({ hostId }));
    const hostIs = (test: (found: Host) => boolean, hostId = "second") =>
      waitUntil(`host ${hostId} is as it should be`, async () => test(await getHost(hostId)), {
        everyMs: 250,
        describe: () => `${host.output}\n${lastLogLines(platform.directory, 30, "host")}`,
      });
    const create = async (name: string) => {
      const { id } = await services.create(name, { allowed_cidrs: [`${network.near}/32`, "10.0.0.0/8"] });
      return id;
    };
    const running = async (id: string) => {
      // The first machine of a daemon waits until the image is imported.
      await services.settled(id, "Running", 150_000);
      return services.open(id);
    };
    const instancesOn = async (client: IncusClient) =>
      (await client.call<string[]>("GET", "/1.0/instances", signal)).length;
    const machineOf = ({ service }: RunningService) => service.nodes[0]?.id ?? "";
    const count = async (of: RunningService) => {
      const sql = "INSERT INTO written DEFAULT VALUES RETURNING (SELECT count(*)::int FROM written) AS before";
      const [row] = await queryOnce<{ before: number }>(platform, of.connection, of, sql);
      return row?.before;
    };

    it("run services, which clients reach on both where their allow-list permits", async () => {
      // Both hosts share one physical disk, so the host with more memory is preferred.
      near = await running(await create("near"));
      await hosts((rpcs) => rpcs.cordonHost({ hostId: "local" }));
      far = await running(await create("far"));
      expect([await instancesOn(incus.local), await instancesOn(incus.second)]).toEqual([1, 1]);
      for (const each of [near, far]) {
        await queryOnce(platform, each.connection, each, "CREATE TABLE written (at timestamptz DEFAULT now())");
        expect(await count(each)).toBe(0);
      }
      const found = await getHost("second");
      expect(found).toMatchObject({ provider: "incus", machines: 1, memoryPromisedBytes: 2n * 1024n ** 3n });
      const path = `/managed-services/${far.service.id}`;
      expectStatus(await platform.rest.patch(path, { allowed_cidrs: ["192.0.2.1/32"] }), 200);
      await waitUntil("the other host's edge is closed", () =>
        count(far).then(
          () => false,
          () => true,
        ),
      );
      expectStatus(await platform.rest.patch(path, { allowed_cidrs: [`${network.near}/32`] }), 200);
      await waitUntil("the other host's edge is open again", () =>
        count(far).then(
          () => true,
          () => false,
        ),
      );
    });

    it("route between members of one service, and drop packets between other machines", async () => {
      for (const id of ["local", "second"]) await hostIs(({ missingPaths }) => missingPaths.length === 0, id);
      const routes = (await run("ip", ["route", "show", "proto", "146"])).stdout;
      expect(routes).toContain(`${block}.0.0/16 via ${network.far}`);
      expect(await network.run("ip", "route", "show", "proto", "146")).toContain(`via ${network.near}`);
      const pid = await firstProcessOf(incus.local, machineOf(near));
      const { stdout } = await run("nsenter", ["-t", String(pid), "-n", "ip", "-json", "route", "get", `${block}.0.9`]);
      expect(JSON.parse(stdout)).toMatchObject([{ gateway: expect.any(String) }]);
    });

    it("reject a service that fits on neither, with the figures of each, and create it once one has capacity", async () => {
      const second = await running(await create("second"));
      expect([await instancesOn(incus.local), await instancesOn(incus.second)]).toEqual([1, 2]);
      const third = await create("third");
      const { error } = await services.settled(third, "Error");
      expect(error?.message).toMatch(/local: it is cordoned\./);
      expect(error?.message).toMatch(/second: 2\.0 GiB of memory are requested, and 4\.0 GiB of .* are reserved/);
      await services.delete(second.service.id);
      const created = await waitUntil(
        "it is created by itself",
        async () => {
          const service = await services.get(third);
          return service.status === "Running" && service.operation === null;
        },
        { withinMs: 120_000, describe: () => services.describe(third) },
      );
      expect(created).toBe(true);
      expect(await instancesOn(incus.second)).toBe(2);
      await services.delete(third);
    });

    it("report machines of a lost host as unreachable, create others elsewhere, and adopt it when it is back", async () => {
      const keeper = await firstProcessOf(incus.second, machineOf(far));
      const before = await count(far);
      const drained = await running(await create("goes"));
      expect(await instancesOn(incus.second)).toBe(2);
      await hosts((rpcs) => rpcs.uncordonHost({ hostId: "local" }));
      await network.cable(false);
      killImmediately(await daemonOf(incus.second));
      const at = Date.now();
      await hostIs(({ state }) => state === "unreachable");
      const node = async () => (await services.get(far.service.id)).nodes[0]?.status;
      await waitUntil("its machine is reported unreachable", async () => (await node()) === "Unreachable");
      console.log(`host lost: reported after ${Date.now() - at} ms`);
      expect(await count(near)).toBeGreaterThanOrEqual(0);
      const onOtherHost = await running(await create("elsewhere"));
      expect(await firstProcessOf(incus.local, machineOf(onOtherHost))).toBeGreaterThan(0);
      expectStatus(await platform.rest.delete(`/managed-services/${drained.service.id}`), 202);

      await network.cable(true);
      const backAtMs = Date.now();
      await hostIs(({ state }) => state === "ready");
      await waitUntil(
        "its service is healthy",
        async () => {
          const { status, health } = await services.get(far.service.id);
          return status === "Running" && health.status === "healthy";
        },
        { describe: () => services.describe(far.service.id) },
      );
      console.log(`host back: its service is healthy after ${Date.now() - backAtMs} ms`);
      expect(await firstProcessOf(incus.second, machineOf(far))).toBe(keeper);
      expect(await count(far)).toBe((before ?? 0) + 1);
      await services.deleted(drained.service.id);
      expect([await instancesOn(incus.local), await instancesOn(incus.second)]).toEqual([2, 1]);
      await services.delete(onOtherHost.service.id);
    });

    it("accept HTTPS clients with certificates until the next start", async () => {
      const files = await mkdtemp(join(tmpdir(), "holdfast-hosts-"));
      try {
        const { cert, key } = await createTestCertificate(Date.now() + 90 * 86_400_000);
        const certificate = cert.replaceAll(/-----[^-]+-----|\s/g, "");
        await incus.second.call("POST", "/1.0/certificates", signal, { type: "client", certificate });
        await incus.second.call("PATCH", "/1.0", signal, { config: { "core.https_address": "127.0.0.1:8443" } });
        const about = await incus.second.call<{ environment: { certificate: string } }>("GET", "/1.0", signal);
        const names = { "client.crt": cert, "client.key": key, "server.crt": about.environment.certificate };
        for (const [name, text] of Object.entries(names)) await writeFile(join(files, name), text, { mode: 0o600 });
        const before = await count(far);
        await host.stop();
        await hostIs(({ state }) => state === "unreachable");
        await host.start(undefined, [], {
          HOLDFAST_INCUS_URL: "https://127.0.0.1:8443",
          HOLDFAST_INCUS_CERT: join(files, "client.crt"),
          HOLDFAST_INCUS_KEY: join(files, "client.key"),
          HOLDFAST_INCUS_SERVER_CERT: join(files, "server.crt"),
        });
        await hostIs(({ state }) => state === "ready");
        await waitUntil(
          "its service answers",
          () =>
            count(far).then(
              (now) => now === (before ?? 0) + 1,
              () => false,
            ),
          {
            everyMs: 200,
          },
        );
        await hosts((rpcs) => rpcs.cordonHost({ hostId: "local" }));
        const created = await running(await create("by-https"));
        expect(await firstProcessOf(incus.second, machineOf(created))).toBeGreaterThan(0);
        await services.delete(created.service.id);
        await hosts((rpcs) => rpcs.uncordonHost({ hostId: "local" }));
      } finally {
        await rm(files, { recursive: true, force: true });
      }
    });

    it("are drained, uncordoned and removed by their operator", async () => {
      await hosts((rpcs) => rpcs.drainHost({ hostId: "second", stopSingleNodes: true }));
      await services.settled(far.service.id, "Stopped");
      await hostIs(({ drain }) => drain?.state === "drained");
      await hosts((rpcs) => rpcs.uncordonHost({ hostId: "second" }));
      await services.settled(far.service.id, "Running");
      await expect(hosts((rpcs) => rpcs.removeHost({ hostId: "second" }))).rejects.toThrow(far.service.id);
      await services.delete(far.service.id);
      expect(await instancesOn(incus.second)).toBe(0);
      await hosts((rpcs) => rpcs.removeHost({ hostId: "second" }));
      const { hosts: remaining } = await hosts((rpcs) => rpcs.listHosts({}));
      expect(remaining.map(({ id }) => id)).toEqual(["local"]);
      await waitUntil("the route to its machines is removed", async () => {
        const { stdout } = await run("ip", ["route", "show", "proto", "146"]);
        return !stdout.includes(block);
      });
    });
  },
);

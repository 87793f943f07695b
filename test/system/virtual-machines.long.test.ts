import { readdirSync } from "node:fs";
import { join } from "node:path";
import { execFileSync } from "node:child_process";
import type { IncusClient } from "@holdfast/compute/incus/incus-client.ts";
import { guestKey, instanceName } from "@holdfast/compute/incus/instance-config.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Maintenance } from "@holdfast/sdk/index.ts";
import { writeRows } from "../faults/acknowledged-writer.ts";
import { setFrozen } from "../faults/fault-fixture.ts";
import { type ChangingGuests, createChangingGuests } from "@holdfast/testing/machines/changing-guests.ts";
import { addressOf, openPostgresql, queryOnce } from "@holdfast/testing/api/clients.ts";
import { firstProcessOf, guestsMissing, listeners, openIncusOf } from "@holdfast/testing/machines/incus-machines.ts";
import { type Attempt, createClientNamespace } from "@holdfast/testing/network/client-namespace.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import type { OperationJson } from "@holdfast/testing/api/service-json.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const missing = await guestsMissing();
/** Under emulation a guest takes a minute to start: set this, and vitest's --testTimeout, to more. */
const withinMs = Number(process.env["HOLDFAST_TEST_GUEST_MS"] ?? 120_000);
const signal = new AbortController().signal;

describe.skipIf(missing !== undefined)(
  `a PostgreSQL in a virtual machine of Incus${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    let guests: ChangingGuests;
    let platform: Platform;
    let services: Services;
    let main: RunningService;
    let incus: IncusClient;

    beforeAll(async () => {
      guests = await createChangingGuests();
      platform = await startPlatform({
        flags: ["--provider", "incus"],
        environment: {
          HOLDFAST_CACHE: guests.cache,
          HOLDFAST_VM_PLANS: "tier-1",
          HOLDFAST_SAMPLE_INTERVAL_MS: "1000",
        },
      });
      incus = openIncusOf(platform);
      services = createServices(platform);
      const { id } = await services.create("main", { plan_name: "tier-1-vm" });
      // The very first one waits for its kernel and for the packed image.
      await services.settled(id, "Running", withinMs + 180_000);
      main = await services.open(id);
    }, withinMs + 240_000);
    afterAll(async () => {
      await incus?.close();
      await platform?.remove();
      guests?.close();
    });

    const machineId = () => main.service.nodes[0]?.id ?? "";
    const query = <Row extends object>(sql: string) =>
      queryOnce<Row>(platform, main.connection, { password: main.password }, sql);
    const settled = (status: string) => services.settled(main.service.id, status, withinMs);
    const order = async (verb: "start" | "stop") =>
      expectStatus(await platform.rest.post(`/managed-services/${main.service.id}/${verb}`), 202);
    const isHealthy = () =>
      waitUntil(
        "the service is healthy",
        async () => {
          const { health, nodes } = await services.get(main.service.id);
          return health.status === "healthy" && nodes.every(({ status }) => status === "Running");
        },
        { withinMs, describe: () => services.describe(main.service.id) },
      );

    const instance = () =>
      incus.call<{ type: string; config: Record<string, string> }>(
        "GET",
        `/1.0/instances/${instanceName(machineId())}`,
        signal,
      );
    const maintenance = async () =>
      expectStatus(await platform.rest.get<Maintenance>(`/managed-services/${main.service.id}/maintenance`), 200).json;
    const pending = (kernel: string) =>
      waitUntil(
        `${kernel} is pending`,
        async () => (await maintenance()).updates.find((update) => update.id === kernel),
        {
          describe: async () => JSON.stringify(await maintenance()),
        },
      );
    const begin = async (kernel: string) => {
      const path = `/managed-services/${main.service.id}/maintenance/apply`;
      return expectStatus(await platform.rest.post<OperationJson>(path, { update_ids: [kernel] }), 202).json.id;
    };
    // A killed controller does not respond.
    const operation = async (id: string) =>
      (await platform.rest.get<OperationJson>(`/operations/${id}`).catch(() => undefined))?.json;
    const ended = (id: string) =>
      waitUntil(
        "the kernel is applied or rolled back",
        async () => {
          const now = await operation(id);
          return now?.finished_at == null ? undefined : now;
        },
        { withinMs: 2 * withinMs, describe: () => services.describe(main.service.id) },
      );

    it("responds over TLS by its name, from a guest with another kernel", async () => {
      expect((await instance()).type).toBe("virtual-machine");
      const sql =
        "SELECT host(inet_server_addr()) AS at, (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS tls";
      const at = await addressOf(platform, main.connection.host);
      expect(await query(sql)).toEqual([{ at, tls: true }]);
      const login = { password: main.password, verify: "address" } as const;
      await expect(openPostgresql(platform, main.connection, login)).rejects.toThrow(/altnames|IP/);
    });

    it("is reached only from its allow-list, as soon as the list changes", async () => {
      const [guest, outsider] = await Promise.all([createClientNamespace(), createClientNamespace()]);
      const address = await addressOf(platform, main.connection.host);
      const before = main.service.allowed_cidrs;
      const allow = async (allowed_cidrs: readonly string[]) =>
        expectStatus(await platform.rest.patch(`/managed-services/${main.service.id}`, { allowed_cidrs }), 200);
      const becomes = (expected: Attempt) =>
        waitUntil(`the service is ${expected}`, async () => (await guest.connect(address, 5432)) === expected, {
          withinMs,
        });
      try {
        expect(await guest.connect(address, 5432)).toBe("refused");
        await allow([...before, `${guest.address}/32`]);
        await becomes("open");
        expect(await outsider.connect(address, 5432)).toBe("refused");
        // The other open ports of the guest are for controllers only.
        expect(await guest.connect(address, 22)).toBe("refused");
        await allow(before);
        await becomes("refused");
      } finally {
        await Promise.all([guest.close(), outsider.close()]);
      }
    });

    it("reports all metrics of its machine, from inside the guest", async () => {
      const names = ["cpu", "memory", "disk", "disk_iops", "network_in", "network_out"];
      const path = `/managed-services/${main.service.id}/metrics?period=15m&${names.map((name) => `metric=${name}`).join("&")}`;
      type Metrics = { series: { metric: string; points: [number, number, number, number][] }[]; absent: object[] };
      await query("CREATE TABLE busy AS SELECT n, md5(n::text) FROM generate_series(1, 2000) AS n");
      const metrics = await waitUntil(
        "each metric has a value",
        async () => {
          const { json } = expectStatus(await platform.rest.get<Metrics>(path), 200);
          const measured = json.series.filter(({ points }) => points.some(([, , , value]) => value > 0));
          return measured.length === names.length ? json : undefined;
        },
        { withinMs, describe: async () => (await platform.rest.get(path)).text },
      );
      expect(metrics.absent).toEqual([]);
      const shares = metrics.series.filter(({ metric }) => ["cpu", "memory", "disk"].includes(metric));
      expect(Math.max(...shares.flatMap(({ points }) => points.map(([, , , value]) => value)))).toBeLessThanOrEqual(
        100,
      );
    });

    it("rejects another plan, of either kind, and names the field", async () => {
      for (const plan_name of ["tier-1", "tier-2", "tier-1-vm"]) {
        const response = await platform.rest.patch<{ errors: object[] }>(`/managed-services/${main.service.id}`, {
          plan_name,
        });
        expect(expectStatus(response, 400).json.errors).toMatchObject([{ field: "plan_name", code: "fixed" }]);
      }
    });

    it("retains its data over a graceful stop and a start", async () => {
      await query("CREATE TABLE kept AS SELECT 42 AS value");
      await order("stop");
      await settled("Stopped");
      await order("start");
      await settled("Running");
      expect(await query("SELECT value FROM kept")).toEqual([{ value: 42 }]);
    });

    it("boots its own kernel until a newer one is applied, and returns to it when the next does not start", async () => {
      expect(await maintenance()).toMatchObject({ guest_kernel: guests.first, updates: [] });
      await guests.choose(guests.valid);
      expect(await pending(guests.valid)).toMatchObject({ kind: "guest_kernel", to: "98.1", blocked_reason: null });
      expect((await instance()).config[guestKey]).toBe(guests.first);
      const id = await begin(guests.valid);
      const lateSteps = ["ReplaceGuestKernel", "SetupAgent", "ProvisioningHealth"];
      const isPlaced = async () => lateSteps.includes((await operation(id))?.step ?? "");
      await waitUntil("the machine gets it", isPlaced, { withinMs, everyMs: 10 });
      for (const pid of platform.processes().controllers) killImmediately(pid);
      expect(await ended(id)).toMatchObject({ status: "completed", error: null });
      expect((await instance()).config[guestKey]).toBe(guests.valid);
      expect(await maintenance()).toMatchObject({ guest_kernel: guests.valid, updates: [] });
      expect(await query("SELECT value FROM kept")).toEqual([{ value: 42 }]);

      await guests.choose(guests.broken);
      expect(await pending(guests.broken)).toMatchObject({ from: "98.1", to: "99.1" });
      expect(await ended(await begin(guests.broken))).toMatchObject({
        status: "failed",
        error: { code: "rolled_back_machine_failed", message: expect.stringContaining("Linux 98.1 again") },
      });
      expect((await instance()).config[guestKey]).toBe(guests.valid);
      const [update] = (await maintenance()).updates;
      expect(update).toMatchObject({
        id: guests.broken,
        apply_at: null,
        blocked_reason: expect.stringMatching(/rolled back/),
      });
      expect(await query("SELECT value FROM kept")).toEqual([{ value: 42 }]);
    });

    it("returns with all acknowledged rows when its QEMU is killed", async () => {
      const stop = new AbortController();
      const writer = await writeRows(platform, main, stop.signal);
      await waitUntil("some rows are written", () => writer.acknowledged > 20, { withinMs });
      process.kill(await firstProcessOf(incus, machineId()), "SIGKILL");
      await waitUntil("it is not reported healthy", async () => {
        const { health, nodes } = await services.get(main.service.id);
        return health.status !== "healthy" || nodes.some(({ status }) => status !== "Running");
      });
      await isHealthy();
      const before = writer.acknowledged;
      await waitUntil("writes are taken again", () => writer.acknowledged > before, { withinMs });
      stop.abort();
      await writer.done;
      expect(await writer.missing()).toEqual([]);
    });

    it("continues after a pause without a restart, and has the correct time", async () => {
      const started = () => query("SELECT pg_postmaster_start_time()::text AS at");
      const [before, pid] = [await started(), await firstProcessOf(incus, machineId())];
      await setFrozen(incus, machineId(), true);
      try {
        await waitUntil(
          "it is reported unreachable",
          async () => {
            const { nodes } = await services.get(main.service.id);
            return nodes.every(({ status }) => status === "Unreachable");
          },
          { describe: () => services.describe(main.service.id) },
        );
      } finally {
        await setFrozen(incus, machineId(), false);
      }
      await isHealthy();
      expect(await firstProcessOf(incus, machineId())).toBe(pid);
      expect(await started()).toEqual(before);
      await waitUntil(
        "its clock is right",
        async () => {
          const [row] = await query<{ ms: string }>("SELECT extract(epoch FROM clock_timestamp()) * 1000 AS ms");
          return Math.abs(Date.now() - Number(row?.ms)) < 2_500;
        },
        { withinMs },
      );
    });

    it("leaves no objects when it is deleted", async () => {
      const address = await addressOf(platform, main.connection.host);
      const { number } = listeners(platform);
      expectStatus(await platform.rest.delete(`/managed-services/${main.service.id}`), 202);
      await services.deleted(main.service.id, withinMs);
      await waitUntil("the machine is removed", () => readdirSync(join(platform.directory, "machines")).length === 0);
      expect(await incus.call<string[]>("GET", "/1.0/instances", signal)).toEqual([]);
      const outputOf = (command: string, ...args: string[]) => execFileSync(command, args).toString();
      expect(outputOf("ip", "link", "show")).not.toContain(`hf${number}-`);
      expect(outputOf("nft", "list", "table", "inet", `holdfast_${number}`)).not.toContain(address);
      expect(outputOf("losetup", "--all")).not.toContain(platform.directory);
    });
  },
);

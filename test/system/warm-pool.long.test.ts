import { FleetService, type Machine } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { grpcAs } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { testPublicNetwork } from "@holdfast/testing/network/public-network.ts";
import { createServices, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

/** Machines that run ahead of demand, and how services claim them. */
describe("the warm pool", () => {
  let platform: Platform;
  let services: Services;
  let fleet: ReturnType<typeof grpcAs>;
  const environment = { HOLDFAST_WAITING_MACHINES: "1", HOLDFAST_WAITING_MACHINES_MAX: "1" };

  beforeAll(async () => {
    platform = await startPlatform({ environment, flags: ["--public-addresses", await testPublicNetwork()] });
    services = createServices(platform);
    fleet = grpcAs(platform, platform.operator);
  });
  afterAll(async () => {
    fleet?.close();
    await platform?.remove();
  });

  const machines = async () => (await fleet.of(FleetService).listMachines({ page: { limit: 200 } })).machines;
  /** Resolves with the free machine of the warm pool, once there is one that is not in `but`. */
  const waiting = (but: readonly string[] = []): Promise<Machine> =>
    waitUntil(
      "a machine waits",
      async () => (await machines()).find(({ id, state }) => state === "waiting" && !but.includes(id)),
      { withinMs: 120_000 },
    );
  const processesOf = (id: string) => platform.processes().machines.find((machine) => machine.id === id);
  const bodyOf = async ({ connection, password }: RunningService) => {
    const client = await openPostgresql(platform, connection, { password });
    const { rows } = await client.query("SELECT system_identifier::text AS id FROM pg_control_system()");
    await client.end();
    return String(rows[0]?.id);
  };

  it("belongs to its first owner, as it runs and in the requested size, and another one replaces it", async () => {
    const before = await waiting();
    expect(before).toMatchObject({ ownerKind: "", ownerId: "", desired: "on", diskGb: 1 });
    expect(before.publicAddress).not.toBe(before.address);
    const agent = processesOf(before.id)?.agent;
    const created = await services.createRunning("first", { storage_size_gb: 3, plan_name: "tier-2" });
    expect(created.service.nodes.map(({ id }) => id)).toEqual([before.id]);
    expect(processesOf(before.id)?.agent).toBe(agent);
    const claimed = (await machines()).find(({ id }) => id === before.id);
    expect(claimed).toMatchObject({
      ownerKind: "managed-service",
      ownerId: created.service.id,
      state: "running",
      diskGb: 3,
      publicAddress: before.publicAddress,
    });
    expect(created.connection.nodes.map(({ addresses }) => addresses)).toEqual([[before.publicAddress]]);
    const next = await waiting([before.id]);
    const second = await services.createRunning("second");
    expect(second.service.nodes.map(({ id }) => id)).toEqual([next.id]);
    expect(await bodyOf(second)).not.toBe(await bodyOf(created));
    await services.delete(second.service.id);
    expect((await machines()).map(({ id }) => id)).not.toContain(next.id);
  }, 180_000);

  it("belongs to one owner, and serves, when controller and agent are killed between claim and use", async () => {
    const { id } = await waiting();
    const agent = processesOf(id)?.agent ?? 0;
    // The agent cannot use its claim while it is paused.
    killImmediately(agent, "SIGSTOP");
    const { id: serviceId, nodes } = await services.create("interrupted");
    expect(nodes.map((node) => node.id)).toEqual([id]);
    for (const controller of platform.processes().controllers) killImmediately(controller);
    killImmediately(agent);
    await waitUntil("the API answers", async () => (await platform.rest.get("/catalog")).status === 200);
    await services.settled(serviceId, "Running");
    await bodyOf(await services.open(serviceId));
    const owned = (await machines()).filter(({ ownerId }) => ownerId === serviceId);
    expect(owned.map((machine) => machine.id)).toEqual([id]);
  }, 180_000);

  it("is adopted unchanged after kill -9 of the control plane", async () => {
    const { id } = await waiting();
    const agent = processesOf(id)?.agent;
    await platform.killControlPlane();
    await platform.start();
    expect((await waiting()).id).toBe(id);
    expect(processesOf(id)?.agent).toBe(agent);
  }, 180_000);
});

import { rmSync } from "node:fs";
import { join } from "node:path";
import { restoreControlPlane } from "@holdfast/local/restore-control-plane.ts";
import { ControlService, FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import type { GrpcCalls } from "@holdfast/testing/api/grpc-calls.ts";
import { numbersOf, queuesOf } from "@holdfast/testing/api/service-queues.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

describe("the control plane, lost and restored from its snapshot", () => {
  let platform: Platform;
  let services: Services;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
  });
  afterAll(() => platform?.remove());

  const query = <Row extends object>({ connection, password }: RunningService, sql: string) =>
    queryOnce<Row>(platform, connection, { password }, sql);
  const startOf = (service: RunningService) =>
    query<{ at: string }>(service, "select pg_postmaster_start_time()::text as at");
  const withControl = <T>(run: (rpcs: GrpcCalls<typeof ControlService>) => Promise<T>) =>
    asOperator(platform, ControlService, run);

  it("adopts its machines without an engine restart, and deletes none until it is confirmed", async () => {
    const retained = await services.createRunning("kept");
    const startedAt = await startOf(retained);
    const queues = queuesOf(platform, retained.service.id);
    await queues.create("ended");
    await withControl((rpcs) => rpcs.backupControlPlane({}));
    // Created after the snapshot: its machine has no owner any more, and its data must not be lost for that.
    const forgotten = await services.createRunning("forgotten");
    const machines = platform.processes().machines.map(({ id }) => id);
    const lateQueue = await queues.create("late", { max_attempts: 9 });
    await queues.send("late", [8, 9]);
    await queues.remove("ended");

    await platform.killControlPlane();
    rmSync(join(platform.directory, "etcd", "data"), { recursive: true, force: true });
    const { signal } = new AbortController();
    await restoreControlPlane({ dataDirectory: platform.directory, backupId: undefined, signal });
    await platform.start();

    await services.settled(retained.service.id, "Running");
    expect(await startOf(retained)).toEqual(startedAt);
    expectStatus(await platform.rest.get(`/managed-services/${forgotten.service.id}`), 404);
    expect(platform.processes().machines.map(({ id }) => id)).toEqual(machines);

    const pausedKinds = async () => (await withControl((rpcs) => rpcs.listHolds({}))).holds.map(({ kind }) => kind);
    await waitUntil("the hold is known", async () => (await pausedKinds()).includes("restored"));
    const swept = async (dryRun: boolean) => {
      const { orphans } = await asOperator(platform, FleetService, (rpcs) => rpcs.sweepOrphans({ dryRun }));
      return orphans.map(({ machineId, action }) => ({ machineId, action }));
    };
    const machineId = forgotten.service.nodes[0]?.id;
    expect(await swept(false)).toEqual([{ machineId, action: "kept" }]);
    expect(platform.processes().machines.map(({ id }) => id)).toEqual(machines);
    await withControl((rpcs) => rpcs.releaseHold({ kind: "restored" }));
    expect(await pausedKinds()).toEqual([]);
    await waitUntil("it has no owner from then on", async () => (await swept(true))[0]?.action === "stopped");

    // The data of queues are newer than the store: existing ones are adopted, and deleted ones end here.
    expect(await queues.active("late")).toMatchObject({ id: lateQueue.id, max_attempts: 9 });
    expect(numbersOf(await queues.claim("late", { max: 10 }))).toEqual([8, 9]);
    await queues.deleted("ended");
  });
});

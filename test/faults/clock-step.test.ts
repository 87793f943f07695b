import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ControlService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock, findFakeClockLibrary } from "@holdfast/testing/controller/fake-clock.ts";
import type { GrpcCalls } from "@holdfast/testing/api/grpc-calls.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { type SecondController, startSecondController } from "@holdfast/testing/platform/second-controller.ts";
import { createServices, expectStatus, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const hourS = 3_600;
const library = findFakeClockLibrary();
const why = library === undefined ? " (skipped: libfaketime is not here and apt does not bring it)" : "";

describe.skipIf(library === undefined)(`a wall clock that is stepped by an hour${why}`, () => {
  let platform: Platform;
  let services: Services;
  let second: SecondController;
  let clock: FakeClock;

  beforeAll(async () => {
    platform = await startPlatform();
    clock = createFakeClock(library ?? "", join(platform.directory, "clock"));
    // Half a minute without CPU on a busy machine must not expire its lease; an hour of clock step would.
    second = await startSecondController(platform, { ...clock.environment, HOLDFAST_CONTROLLER_LEASE_S: "60" });
    services = createServices(platform, second.rest);
  });
  afterAll(async () => {
    await second?.stop();
    await platform?.remove();
  });

  const withControl = <T>(run: (rpcs: GrpcCalls<typeof ControlService>) => Promise<T>) =>
    asOperator(platform, ControlService, run);

  it("warns and defers time-based deletion, and keeps leases, until an operator accepts the clock", async () => {
    const { id } = await services.create("short-lived", { database_type: "valkey", ttl_hours: 2 });
    await services.settled(id, "Running");
    // From here on only the controller with the stepped clock reconciles.
    await withControl((rpcs) => rpcs.drainController({ controllerId: "controller-1" }));
    const controllers = async () => (await withControl((rpcs) => rpcs.listControllers({}))).controllers;
    const findSecond = () => controllers().then((all) => all.find((each) => each.id === "controller-2"));
    const before = await waitUntil("the other one has everything", async () => {
      const all = await controllers();
      const second = all.find((each) => each.id === "controller-2");
      return all.every((each) => each === second || (each.shards === 0 && each.sessions === 0)) && second;
    });

    clock.step(hourS + 60);
    const kinds = async () => (await withControl((rpcs) => rpcs.listHolds({}))).holds.map(({ kind }) => kind);
    await waitUntil("the step is seen", async () => (await kinds()).includes("clock"));
    await touch("warned");
    await waitUntil("the end is announced", async () => (await warnings()).includes(1));

    clock.step(2 * hourS + 60);
    await touch("held");
    const created = await services.create("asked-meanwhile", { database_type: "valkey" });
    await services.settled(created.id, "Running");
    await services.delete(created.id);
    expect(await services.get(id)).toMatchObject({ status: "Running", operation: null });
    const { startedAt, shards } = before;
    expect(await findSecond()).toMatchObject({ startedAt, shards });
    expect(readFileSync(join(platform.directory, "log", "second-controller.log"), "utf8")).not.toContain("lease lost");

    await withControl((rpcs) => rpcs.releaseHold({ kind: "clock" }));
    await touch("released");
    await services.deleted(id);

    /** Triggers a reconcile; the service may be deleted already. */
    async function touch(tag: string): Promise<void> {
      const { status } = await second.rest.patch(`/managed-services/${id}`, { tags: { tag } });
      expect(tag === "released" ? [200, 404, 409] : [200]).toContain(status);
    }

    async function warnings(): Promise<unknown[]> {
      const path = `/managed-services/${id}/events`;
      const { json } = expectStatus(
        await second.rest.get<{ events: { event_type: string; data: Record<string, unknown> }[] }>(path),
        200,
      );
      return json.events
        .filter((event) => event.event_type === "service.expiring")
        .map(({ data }) => data["hours_left"]);
    }
  });
});

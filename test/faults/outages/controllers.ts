import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import type { OccupiedPort } from "@holdfast/testing/platform/occupied-port.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { startSecondController } from "@holdfast/testing/platform/second-controller.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { endOf } from "../engine-changes.ts";
import { type OutageFixture, outageMs, type InProgressJson } from "./outage-fixture.ts";

/** Outages of all controllers and etcd, and of one controller of two. */
export function controllerOutages(fixture: OutageFixture): void {
  it("of controllers and etcd: names resolve, services serve, and a killed engine restarts", async () => {
    const occupied: OccupiedPort[] = [];
    try {
      occupied.push(await fixture.occupy("etcd_client", () => [fixture.platform.processes().etcd]));
      occupied.push(await fixture.occupy("api", () => fixture.platform.processes().controllers));
      occupied.push(await fixture.occupy("agents", () => fixture.platform.processes().controllers));
      // A controller that starts without etcd waits for it, and serves when it is back.
      let pid: number | undefined;
      const waiting = await waitUntil(
        "a controller is started again and stays",
        () => {
          const [now] = fixture.platform.processes().controllers;
          const isStable = now !== undefined && now === pid;
          pid = now;
          return isStable && now;
        },
        { everyMs: 1_000 },
      );
      killImmediately(fixture.machineOf(fixture.database)?.engine ?? 0);
      await waitUntil(
        "the killed engine is back",
        async () => (await fixture.query("SELECT turn FROM kept")).length === 1,
      );
      const until = Date.now() + outageMs / 2;
      while (Date.now() < until) {
        await fixture.expectServing();
        // Time: the rate of the checks during the outage.
        await sleep(500);
      }
      // A DNS server that starts without a controller serves from its disk.
      killImmediately(fixture.platform.processes().dns ?? 0);
      await waitUntil("names resolve again", async () => {
        return (await resolveName(fixture.platform.admin.dns_server, fixture.database.connection.host)).length === 1;
      });
      await fixture.expectServing();
      expect(fixture.platform.processes().controllers).toEqual([waiting]);
    } finally {
      for (const port of occupied) await port.release();
    }
    const before = fixture.engines();
    await waitUntil("the API is back", async () => (await fixture.platform.rest.get(fixture.path())).status === 200, {
      everyMs: 200,
    });
    await fixture.expectWorking();
    expect(fixture.engines()).toEqual(before);
  });

  it("of one controller of two: the other takes over its keys and agents, and no engine restarts", async () => {
    const before = fixture.engines();
    const second = await startSecondController(fixture.platform);
    const occupied: OccupiedPort[] = [];
    try {
      const others = createServices(fixture.platform, second.rest);
      expect((await others.get(fixture.database.service.id)).name).toBe("database");
      const { id } = await others.create("through-second", { database_type: "valkey" });
      await fixture.services.settled(id, "Running");

      occupied.push(await fixture.occupy("api", () => fixture.platform.processes().controllers));
      occupied.push(await fixture.occupy("agents", () => fixture.platform.processes().controllers));
      const created = await others.create("after-take-over", { database_type: "valkey" });
      const running = await others.settled(created.id, "Running");
      expect(running.nodes[0]?.status).toBe("Running");
      // The agents of the killed controller have connected to the other one.
      await waitUntil("a user can be created", async () => {
        const body = { username: "taken_over", role: "readonly" };
        const users = `/managed-services/${fixture.database.service.id}/database-users`;
        const response = await second.rest.post<InProgressJson>(users, body);
        // The engine executes it after the response's deadline.
        if (response.status !== 202) return expectStatus(response, 201);
        expect(await endOf(second, response.json.operation.id)).toMatchObject({ status: "completed" });
        return true;
      });
      for (const port of occupied.splice(0)) await port.release();
      await waitUntil(
        "the first controller is back",
        async () => (await fixture.platform.rest.get(fixture.path())).status === 200,
        {
          everyMs: 200,
        },
      );
      expectStatus(await fixture.platform.rest.delete(fixture.path("/database-users/taken_over")), 204);
      for (const deletedId of [id, created.id])
        expectStatus(await fixture.platform.rest.delete(`/managed-services/${deletedId}`), 202);
      for (const deletedId of [id, created.id]) await fixture.services.deleted(deletedId);
    } finally {
      for (const port of occupied) await port.release();
      await second.stop();
    }
    await fixture.expectWorking();
    expect(fixture.engines()).toEqual(before);
  });
}

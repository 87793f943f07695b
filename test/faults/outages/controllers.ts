import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import type { OccupiedPort } from "@holdfast/testing/platform/occupied-port.ts";
import { killAtOnce } from "@holdfast/testing/platform/platform-processes.ts";
import { startSecondController } from "@holdfast/testing/platform/second-controller.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { endOf } from "../engine-changes.ts";
import { type OutageFixture, outageMs, type InProgressJson } from "./outage-fixture.ts";

/** Without a deciding controller, or with one of two. */
export function controllerOutages(its: OutageFixture): void {
  it("of controllers and etcd: names resolve, services serve, and a killed engine restarts", async () => {
    const occupied: OccupiedPort[] = [];
    try {
      occupied.push(await its.occupy("etcd_client", () => [its.platform.processes().etcd]));
      occupied.push(await its.occupy("api", () => its.platform.processes().controllers));
      occupied.push(await its.occupy("agents", () => its.platform.processes().controllers));
      // A controller that starts meanwhile waits for etcd and serves when it is back.
      let seen: number | undefined;
      const waiting = await waitUntil(
        "a controller is started again and stays",
        () => {
          const [now] = its.platform.processes().controllers;
          const isStable = now !== undefined && now === seen;
          seen = now;
          return isStable && now;
        },
        { everyMs: 1_000 },
      );
      killAtOnce(its.machineOf(its.database)?.engine ?? 0);
      await waitUntil("the killed engine is back", async () => (await its.ask("SELECT turn FROM kept")).length === 1);
      const until = Date.now() + outageMs / 2;
      while (Date.now() < until) {
        await its.expectServing();
        await sleep(500);
      }
      // A DNS server that starts meanwhile serves from its disk.
      killAtOnce(its.platform.processes().dns ?? 0);
      await waitUntil("names resolve again", async () => {
        return (await resolveName(its.platform.admin.dns_server, its.database.connection.host)).length === 1;
      });
      await its.expectServing();
      expect(its.platform.processes().controllers).toEqual([waiting]);
    } finally {
      for (const port of occupied) await port.release();
    }
    const before = its.engines();
    await waitUntil("the API is back", async () => (await its.platform.rest.get(its.path())).status === 200, {
      everyMs: 200,
    });
    await its.expectWorking();
    expect(its.engines()).toEqual(before);
  });

  it("of one controller of two: the other takes over its keys and agents, and no engine restarts", async () => {
    const before = its.engines();
    const second = await startSecondController(its.platform);
    const occupied: OccupiedPort[] = [];
    try {
      const others = createServices(its.platform, second.rest);
      expect((await others.get(its.database.service.id)).name).toBe("database");
      const { id } = await others.create("through-second", { database_type: "valkey" });
      await its.services.settled(id, "Running");

      occupied.push(await its.occupy("api", () => its.platform.processes().controllers));
      occupied.push(await its.occupy("agents", () => its.platform.processes().controllers));
      const created = await others.create("after-take-over", { database_type: "valkey" });
      const running = await others.settled(created.id, "Running");
      expect(running.nodes[0]?.status).toBe("Running");
      // The agents of the dead controller have found the living one.
      await waitUntil("a user can be created", async () => {
        const body = { username: "taken_over", role: "readonly" };
        const users = `/managed-services/${its.database.service.id}/database-users`;
        const answer = await second.rest.post<InProgressJson>(users, body);
        // The engine executes it after the response's deadline.
        if (answer.status !== 202) return expectStatus(answer, 201);
        expect(await endOf(second, answer.json.operation.id)).toMatchObject({ status: "completed" });
        return true;
      });
      for (const port of occupied.splice(0)) await port.release();
      await waitUntil(
        "the first controller is back",
        async () => (await its.platform.rest.get(its.path())).status === 200,
        {
          everyMs: 200,
        },
      );
      expectStatus(await its.platform.rest.delete(its.path("/database-users/taken_over")), 204);
      for (const deletedId of [id, created.id])
        expectStatus(await its.platform.rest.delete(`/managed-services/${deletedId}`), 202);
      for (const deletedId of [id, created.id]) await its.services.deleted(deletedId);
    } finally {
      for (const port of occupied) await port.release();
      await second.stop();
    }
    await its.expectWorking();
    expect(its.engines()).toEqual(before);
  });
}

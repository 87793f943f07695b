import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OperationJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type LifecycleUnderTest, whilePaused } from "./lifecycle-under-test.ts";

/** Start, stop and restart: the states in which each is accepted, and their results. */
export function verbCases(fixture: LifecycleUnderTest): void {
  describe("verbs", () => {
    let id: string;
    beforeAll(async () => {
      id = (await fixture.services.createRunning("verbs")).service.id;
    });
    afterAll(() => fixture.services.delete(id));

    it("start is rejected while it is Running", async () => {
      expect(expectStatus(await fixture.post(id, "start"), 409).json.code).toBe("wrong_state");
    });

    it("a repeated stop is the same operation, and another verb is rejected", async () => {
      const machineId = (await fixture.services.get(id)).nodes[0]?.id;
      const agent = fixture.platform.processes().machines.find((machine) => machine.id === machineId)?.agent;
      await whilePaused(agent, async () => {
        const first = expectStatus(await fixture.post(id, "stop"), 202).json.operation;
        const [repeated, conflicting] = await Promise.all([fixture.post(id, "stop"), fixture.post(id, "restart")]);
        expect(expectStatus(repeated, 202).json.operation.id).toBe(first.id);
        expect(expectStatus(conflicting, 409).json).toMatchObject({ code: "operation_in_progress" });
      });
      const stopped = await fixture.services.settled(id, "Stopped");
      expect(stopped.nodes[0]).toMatchObject({ status: "Stopped" });
      expect(fixture.platform.processes().machines.map((machine) => machine.id)).not.toContain(stopped.nodes[0]?.id);
    });

    it("stop and restart are rejected while it is Stopped, and its spec can still change", async () => {
      expect(expectStatus(await fixture.post(id, "stop"), 409).json.code).toBe("wrong_state");
      expect(expectStatus(await fixture.post(id, "restart"), 409).json.code).toBe("wrong_state");
      const change = { tags: { a: "b" }, ttl_hours: 5, deletion_protection: true, allowed_cidrs: ["127.0.0.0/8"] };
      expectStatus(await fixture.platform.rest.patch(`/managed-services/${id}`, change), 200);
      const original = { ttl_hours: null, deletion_protection: false };
      const response = await fixture.platform.rest.patch<ServiceJson>(`/managed-services/${id}`, original);
      expect(expectStatus(response, 200).json).toMatchObject({ ttl_hours: null, expires_at: null });
    });

    it("stop is rejected during start, and works after it", async () => {
      const started = expectStatus(await fixture.post(id, "start"), 202).json;
      expect(started.operation.type).toBe("start");
      expect(expectStatus(await fixture.post(id, "stop"), 409).json).toMatchObject({
        code: "operation_in_progress",
        operation: { id: started.operation.id },
      });
      expect(expectStatus(await fixture.post(id, "start"), 202).json.operation.id).toBe(started.operation.id);
      await fixture.services.settled(id, "Running");
      await fixture.services.verb(id, "stop");
      await fixture.services.verb(id, "start");
    });

    it("restart leaves the status Running and gives the engine a new process", async () => {
      const machineId = (await fixture.services.get(id)).nodes[0]?.id;
      const engine = () => fixture.platform.processes().machines.find((machine) => machine.id === machineId)?.engine;
      const before = engine();
      const { operation } = expectStatus(await fixture.post(id, "restart"), 202).json;
      const statuses = new Set<string>();
      await waitUntil("the restart is over", async () => {
        statuses.add((await fixture.services.get(id)).status);
        const { json } = await fixture.platform.rest.get<OperationJson>(`/operations/${operation.id}`);
        return json.status === "completed";
      });
      expect([...statuses]).toEqual(["Running"]);
      expect(engine()).not.toBe(before);
    });

    it("every operation has ended", async () => {
      const operations = await fixture.services.operations(id);
      expect(operations.map(({ type, status }) => `${type} ${status}`)).toEqual([
        "restart completed",
        "start completed",
        "stop completed",
        "start completed",
        "stop completed",
        "create completed",
      ]);
      for (const { finished_at, started_at, progress_pct } of operations) {
        expect(Date.parse(finished_at ?? "")).toBeGreaterThanOrEqual(Date.parse(started_at ?? ""));
        expect(progress_pct).toBe(100);
      }
    });
  });
}

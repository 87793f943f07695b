import { describe, expect, it } from "vitest";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import type { OperationJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type LifecycleUnderTest, whilePaused } from "./lifecycle-under-test.ts";

interface SummaryJson {
  readonly status: string;
  readonly current_task: string | null;
  readonly progress_pct: number;
  readonly operation_id: string | null;
}

/** Creation of a service, once, and its end before it is complete. */
export function creationCases(fixture: LifecycleUnderTest): void {
  describe("creation", () => {
    it("goes from Pending to Running through the spec's steps, with increasing progress", async () => {
      const created = await fixture.services.create("progress");
      expect(created).toMatchObject({ status: "Pending", operation: { type: "create" }, expires_at: null });
      const seen: SummaryJson[] = [];
      await waitUntil("it runs", async () => {
        const { json } = await fixture.platform.rest.get<SummaryJson>(`/managed-services/${created.id}/task-summary`);
        seen.push(json);
        return json.operation_id === null;
      });
      const steps = ["SetupNetwork", "SetupServer", "SetupAgent", "SetupDNS", "ProvisioningHealth"];
      const percentages = seen.map(({ progress_pct }) => progress_pct);
      expect(percentages).toEqual(percentages.toSorted((a, b) => a - b));
      const stepIndexes = seen.flatMap(({ current_task }) =>
        current_task === null ? [] : [steps.indexOf(current_task)],
      );
      expect(stepIndexes).not.toContain(-1);
      expect(stepIndexes).toEqual(stepIndexes.toSorted((a, b) => a - b));
      expect(seen.at(-1)).toEqual({ status: "Running", current_task: null, progress_pct: 100, operation_id: null });
      expect(await fixture.services.get(created.id)).toMatchObject({
        status: "Running",
        operation: null,
        hostname: created.hostname,
        port: created.port,
      });
      await fixture.services.delete(created.id);
    });

    it("begins once for two concurrent requests with one name", async () => {
      const body = { name: "wanted", database_type: "valkey", plan_name: "tier-1", storage_size_gb: 1 };
      const responses = await Promise.all(
        [1, 2, 3, 4].map(() => fixture.platform.rest.post<ServiceJson & ProblemJson>("/managed-services", body)),
      );
      expect(responses.map(({ status }) => status).sort()).toEqual([202, 409, 409, 409]);
      expect(responses.find(({ status }) => status === 409)?.json.code).toBe("name_taken");
      const id = responses.find(({ status }) => status === 202)?.json.id ?? "";
      await fixture.services.settled(id, "Running");
      await fixture.services.delete(id);
      expectStatus(await fixture.platform.rest.post("/managed-services", body), 202);
    });

    it("is deleted during its creation, and its name is free again", async () => {
      const { id, hostname, nodes } = await whilePaused(fixture.platform.processes().dns, endBrief);
      await fixture.services.deleted(id);
      expect(await resolveName(fixture.platform.admin.dns_server, hostname)).toEqual([]);
      await waitUntil("its machine is removed", () =>
        fixture.platform.processes().machines.every((machine) => machine.id !== nodes[0]?.id),
      );
      const next = await fixture.services.create("brief");
      await fixture.platform.rest.delete(`/managed-services/${next.id}`);
      await fixture.services.deleted(next.id);
    });

    /** A service whose names do not resolve yet is not Running. */
    async function endBrief(): Promise<ServiceJson> {
      const created = await fixture.services.create("brief");
      const { id, operation } = created;
      for (const verb of ["start", "stop", "restart"]) {
        const refused = expectStatus(await fixture.post(id, verb), 409).json;
        expect(refused).toMatchObject({ code: "operation_in_progress", operation: { id: operation?.id } });
      }
      expectStatus(await fixture.platform.rest.patch(`/managed-services/${id}`, { tags: { early: "yes" } }), 200);
      expectStatus(await fixture.platform.rest.get(`/managed-services/${id}/connection`), 200);
      expectStatus(await fixture.platform.rest.get(`/managed-services/${id}/database-users`), 409);
      expectStatus(await fixture.post(id, "database-users/app_user/reveal-password"), 409);
      const change = { parameters: { work_mem: "8MB" } };
      expectStatus(await fixture.platform.rest.patch(`/managed-services/${id}/configuration`, change), 409);

      const deletion = await fixture.platform.rest.delete<ServiceJson>(`/managed-services/${id}`);
      expect(expectStatus(deletion, 202).json.operation).toMatchObject({ type: "delete" });
      const repeated = await fixture.platform.rest.delete<ServiceJson>(`/managed-services/${id}`);
      if (repeated.status !== 404) expect(repeated.json.operation?.id).toBe(deletion.json.operation?.id);
      const canceled = await fixture.platform.rest.get<OperationJson>(`/operations/${operation?.id}`);
      if (canceled.status !== 404) expect(canceled.json).toMatchObject({ status: "cancelled", type: "create" });
      return created;
    }
  });
}

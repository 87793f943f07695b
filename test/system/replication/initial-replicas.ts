import { describe, expect, it } from "vitest";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import type { ReplicationUnderTest } from "./replication-under-test.ts";

const serviceBody = { plan_name: "tier-1", storage_size_gb: 1, node_count: 3 };

export function initialReplicaCases(fixture: ReplicationUnderTest): void {
  describe("a service that is created with its replicas", () => {
    it.each([
      ["more nodes than a service can have", { node_count: 6 }, 400, "node_count"],
      ["a mode that needs a replica", { node_count: 1, replication_mode: "sync" }, 400, "replication_mode"],
      ["a mode that its engine has not", { database_type: "valkey", replication_mode: "sync" }, 422, undefined],
      ["an unknown mode", { replication_mode: "most" }, 400, "replication_mode"],
    ])("is refused for %s", async (_what, wrong, status, field) => {
      const body = { name: "refused", database_type: "postgresql", ...serviceBody, ...wrong };
      const { json } = expectStatus(await fixture.platform.rest.post<ProblemJson>("/managed-services", body), status);
      expect(json.errors?.[0]?.field).toBe(field);
    });
  });
}

import { setTimeout as sleep } from "node:timers/promises";
import { OrganizationService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { expect, it } from "vitest";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type OutageFixture, outageMs } from "./outage-fixture.ts";

/** The store or the history cannot be read or written. */
export function storeOutages(fixture: OutageFixture): void {
  it("of etcd: services serve, the API returns 503, and recovery takes no restart", async () => {
    const before = { engines: fixture.engines(), controllers: fixture.platform.processes().controllers };
    const port = await fixture.occupy("etcd_client", () => [fixture.platform.processes().etcd]);
    try {
      const until = Date.now() + outageMs;
      while (Date.now() < until) {
        const change = await fixture.platform.rest.patch<ProblemJson>(fixture.path(), { tags: { during: "outage" } });
        expect(expectStatus(change, 503).json.code).toBe("store_unavailable");
        expect(Number(change.headers["retry-after"])).toBeGreaterThan(0);
        const create = { name: "none", database_type: "valkey", plan_name: "tier-1", storage_size_gb: 1 };
        expectStatus(await fixture.platform.rest.post("/managed-services", create), 503);
        expect([200, 503]).toContain((await fixture.platform.rest.get(fixture.path())).status);
        await fixture.expectServing();
        // Time: the rate of the requests during the outage.
        await sleep(500);
      }
    } finally {
      await port.release();
    }
    await fixture.expectWorking();
    expect({ engines: fixture.engines(), controllers: fixture.platform.processes().controllers }).toEqual(before);
  });

  it("of the history: changes are accepted, and their audit entries arrive afterwards", async () => {
    const port = await fixture.occupy("history", () => [fixture.platform.processes().history]);
    const tag = `history-${Date.now()}`;
    try {
      expectStatus(await fixture.platform.rest.patch(fixture.path(), { tags: { tag } }), 200);
      // A reveal is recorded before its response, or it is refused.
      const reveal = await fixture.platform.rest.post(fixture.path("/database-users/app_user/reveal-password"));
      expectStatus(reveal, 503);
      // Time: the length of the outage.
      await sleep(2_000);
    } finally {
      await port.release();
    }
    await asOperator(fixture.platform, OrganizationService, (rpcs) =>
      waitUntil(
        "the audit has the change",
        async () => {
          const { entries } = await rpcs.listAuditEntries({ page: { limit: 10 } });
          const recent = ({ seconds }: { seconds: bigint }) =>
            Number(seconds) * 1_000 >= Number(tag.split("-")[1]) - 1_000;
          return entries.some(({ action, time }) => action === "managed-service.update" && time && recent(time));
        },
        { everyMs: 200 },
      ),
    );
    expectStatus(await fixture.platform.rest.post(fixture.path("/database-users/app_user/reveal-password")), 200);
  });
}

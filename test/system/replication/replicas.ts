import { describe, expect, it } from "vitest";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import { type OperationJson, type ProblemJson, withPrimary } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { ReplicationUnderTest } from "./replication-under-test.ts";

interface MetricsJson {
  readonly series: readonly {
    readonly metric: string;
    readonly node_id: string;
    readonly points: readonly unknown[];
  }[];
  readonly absent: readonly { readonly metric: string }[];
}

export function replicaCases(fixture: ReplicationUnderTest): void {
  describe("a replica", () => {
    it("is rejected as a primary, and for an unknown node", async () => {
      const response = await fixture.platform.rest.post<ProblemJson>(fixture.path("/nodes"), { role: "primary" });
      expectStatus(response, 400);
      const alone = fixture.main.service.nodes[0]?.id ?? "";
      const rejected = await fixture.platform.rest.delete<ProblemJson>(fixture.path(`/nodes/${alone}`));
      expect(expectStatus(rejected, 409).json.detail).toContain("primary");
      const { status } = await fixture.platform.rest.get(fixture.path("/nodes/019a2f5e-0000-7000-8000-000000000000"));
      expect(status).toBe(404);
    });

    it("receives the data of its primary and all later writes", async () => {
      const node = await fixture.addReplica();
      expect(node).toMatchObject({ role: "replica", status: "Running", operation_id: null });
      const [operation] = await fixture.services.operations(fixture.main.service.id);
      expect(operation).toMatchObject({ type: "add_node", status: "completed" } satisfies Partial<OperationJson>);
      await waitUntil("rows arrive at the replica", async () => {
        const before = fixture.writer.acknowledged;
        const [row] = await fixture.queryNode(node.id, "SELECT count(*)::int AS rows FROM ledger");
        return before > 5 && Number(row?.["rows"]) >= before;
      });
    });

    it("reports its lag", async () => {
      const {
        nodes,
        replication,
        term,
        primary_node_id: primary,
      } = withPrimary(await fixture.services.get(fixture.main.service.id));
      expect({ replication, term }).toMatchObject({ replication: { mode: "async" }, term: 1 });
      const replica = nodes.find(({ role }) => role === "replica");
      const status = await fixture.statusOf(replica?.id ?? "");
      expect(status).toMatchObject({ role: "replica", connected: true, sync_state: "streaming", timeline: 1 });
      expect(Number(status.lag_bytes)).toBeLessThan(16 << 20);
      expect(await fixture.statusOf(primary)).toMatchObject({ role: "primary", lag_bytes: 0, sync_state: null });
    });

    it("has metrics and an alert for its lag, unlike its primary", async () => {
      const { nodes } = await fixture.services.get(fixture.main.service.id);
      const replica = nodes.find(({ role }) => role === "replica");
      const names = ["replication_lag_seconds", "pg_replication_lag_seconds", "replication_lag_bytes"];
      const query = `${names.map((name) => `metric=${name}`).join("&")}&period=15m`;
      const series = await waitUntil("the replica has reported its lag", async () => {
        const { json } = await fixture.platform.rest.get<MetricsJson>(fixture.path(`/metrics?${query}`));
        return json.series.filter(({ points }) => points.length > 0).length === names.length ? json : undefined;
      });
      expect(new Set(series.series.map(({ node_id: node }) => node))).toEqual(new Set([replica?.id]));
      expect(series.absent.map(({ metric }) => metric).sort()).toEqual([...names].sort());
      await waitUntil("a rule watches the lag", async () => {
        const { json } = await fixture.platform.rest.get<{ rules: { metric: string }[] }>(
          fixture.path("/alerts/rules"),
        );
        return json.rules.some(({ metric }) => metric === "replication_lag_seconds");
      });
    });

    it("rejects writes, and is the target of the name for reads", async () => {
      const { nodes, hostname } = await fixture.services.get(fixture.main.service.id);
      const replica = nodes.find(({ role }) => role === "replica");
      await expect(fixture.queryNode(replica?.id ?? "", "CREATE TABLE mine (a int)")).rejects.toThrow("read-only");
      const server = fixture.platform.admin.dns_server;
      await waitUntil("the name for reads resolves to the replica", async () => {
        const [reads, ownAddresses] = await Promise.all([
          resolveName(server, `replica-${hostname}`),
          resolveName(server, replica?.hostname ?? ""),
        ]);
        return reads.length === 1 && reads.join() === ownAddresses.join();
      });
    });
  });
}

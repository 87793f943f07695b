import { expect, it } from "vitest";
import { withPrimary } from "@holdfast/testing/api/service-json.ts";
import { metricsText } from "@holdfast/testing/api/metrics-text.ts";
import { parseExposition } from "@holdfast/testing/api/parse-exposition.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { ReplicationUnderTest } from "./replication-under-test.ts";

interface StatisticsJson {
  readonly since: string;
  readonly queries: readonly { readonly query: string }[];
}

interface RunningJson {
  readonly queries: readonly { readonly query_run_id: string; readonly query: string }[];
}

/** Cases to run before and after the primary changes: the service's figures are the figures of its current primary. */
export function metricsByRoleCases(fixture: ReplicationUnderTest, when: string): void {
  it(`has figures by the roles of its nodes ${when}`, async () => {
    const { nodes, primary_node_id: primary } = withPrimary(await fixture.services.get(fixture.main.service.id));
    const replica = nodes.find(({ role }) => role === "replica")?.id ?? "";
    const roles = { [primary]: "primary", [replica]: "replica" };
    await waitUntil("the newest figures have them", async () => {
      const samples = parseExposition(await metricsText(fixture.platform, "/metrics"));
      const labels = (name: string) =>
        samples
          .filter((each) => each.name === `holdfast_${name}` && each.labels["service_id"] === fixture.main.service.id)
          .map((each) => each.labels);
      const reported = labels("health").map(({ node_id: node = "", role }) => [node, role] as const);
      expect(Object.fromEntries(reported)).toEqual(roles);
      const followers = labels("replication_lag_seconds").map(({ node_id: node }) => node);
      return labels("pg_connections").length === 2 && followers.length === 1 && followers[0] === replica;
    });
  });

  it(`counts the queries of its primary ${when}, since the start of its role`, async () => {
    const { primary_node_id: primary } = withPrimary(await fixture.services.get(fixture.main.service.id));
    const [row] = await fixture.queryNode(primary, "SELECT stats_reset::text AS since FROM pg_stat_statements_info");
    const statistics = await fixture.platform.rest.get<StatisticsJson>(
      fixture.path("/metrics/query-stats?limit=500&order=calls"),
    );
    const { since, queries } = expectStatus(statistics, 200).json;
    expect(new Date(since)).toEqual(new Date(String(row?.["since"])));
    // The writer's.
    expect(queries.some(({ query }) => query.startsWith("INSERT INTO ledger"))).toBe(true);
  });

  it(`lists and cancels queries of its primary, and runs console statements on it ${when}`, async () => {
    const { primary_node_id: primary } = withPrimary(await fixture.services.get(fixture.main.service.id));
    // The lock ends with its session.
    const holder = await fixture.connectNode(primary);
    await holder.query("SELECT pg_advisory_lock(1)");
    const sql = "SELECT pg_advisory_lock(1) AS waits";
    const waiting = fixture.queryNode(primary, sql).catch((error: Error) => error.message);
    const { query_run_id: id } = await waitUntil("it is among the running", async () => {
      const { json } = await fixture.platform.rest.get<RunningJson>(fixture.path("/queries/running"));
      return json.queries.find(({ query }) => query === sql);
    });
    expectStatus(await fixture.platform.rest.post(fixture.path(`/queries/${id}/cancel`), {}), 200);
    expect(await waiting).toMatch(/user request/);
    await holder.end();
    const body = { sql: "SHOW in_hot_standby" };
    const { json } = await fixture.platform.rest.post<{ rows: unknown }>(fixture.path("/ai-query/execute"), body);
    expect(json.rows).toEqual([["off"]]);
  });
}

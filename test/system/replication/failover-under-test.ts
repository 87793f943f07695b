import { withPrimary } from "@holdfast/testing/api/service-json.ts";
import { expect, it } from "vitest";
import { type NodeWriters, rowsOf, startNodeWriters } from "./node-writers.ts";
import { createFailures } from "./failures.ts";
import type { ReplicationUnderTest } from "./replication-under-test.ts";

/** A replica of the PostgreSQL, continuous writes to it and to its primary, and faults of the primary. */
export interface FailoverUnderTest {
  readonly failures: ReturnType<typeof createFailures>;
  /** Writers to both nodes; undefined before they start. */
  nodeWriters(): NodeWriters | undefined;
  begin(): Promise<void>;
  end(): Promise<void>;
}

/** Fixture of failover cases, for a service that has no replica yet. */
export function createFailoverUnderTest(fixture: ReplicationUnderTest): FailoverUnderTest {
  const figures: string[] = [];
  let nodeWriters: NodeWriters | undefined;
  return {
    failures: createFailures(fixture, () => nodeWriters, figures),
    nodeWriters: () => nodeWriters,
    async begin() {
      await fixture.addReplica();
      const { nodes, primary_node_id: primary } = withPrimary(await fixture.services.get(fixture.main.service.id));
      await fixture.queryNode(primary, "CREATE TABLE sides (host text)");
      nodeWriters = startNodeWriters(
        nodes.map(({ hostname }) => hostname),
        rowsOf(fixture.platform, fixture.main),
      );
    },
    async end() {
      await nodeWriters?.stop();
      console.log(figures.join("\n"));
    },
  };
}

/** Last case of a suite in which the service failed over. */
export function finalCases(fixture: ReplicationUnderTest, { nodeWriters }: FailoverUnderTest): void {
  it("never had two writable primaries, and no failover without an end", async () => {
    expect(nodeWriters()?.overlaps()).toEqual([]);
    const operations = await fixture.services.operations(fixture.main.service.id);
    expect(operations.filter(({ status }) => status === "pending" || status === "running")).toEqual([]);
    const failedOver = operations.filter(({ type, status }) => type === "failover" && status === "completed");
    expect(failedOver.length).toBeGreaterThanOrEqual(2);
  });
}

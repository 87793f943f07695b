import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failingPrimaryCases } from "./replication/failing-primary.ts";
import { initialReplicaCases } from "./replication/initial-replicas.ts";
import { replicaCases } from "./replication/replicas.ts";
import { createReplicationUnderTest } from "./replication/replication-under-test.ts";
import { switchoverCases } from "./replication/switchover.ts";
import { synchronousCases } from "./replication/synchronous.ts";
import { createSynchronousUnderTest } from "./replication/synchronous-under-test.ts";

/** One platform for all short cases of services of several nodes; longer cases are in separate files. */
describe("a PostgreSQL of several nodes", () => {
  const fixture = createReplicationUnderTest();
  const orders = createSynchronousUnderTest(fixture);
  beforeAll(async () => {
    await fixture.start();
    orders.begin();
  });
  afterAll(fixture.remove);

  initialReplicaCases(fixture);
  replicaCases(fixture);
  switchoverCases(fixture);

  it("has lost no acknowledged row", async () => {
    expect(await fixture.writer.missing()).toEqual([]);
  });

  failingPrimaryCases(fixture);
  synchronousCases(fixture, orders);
});

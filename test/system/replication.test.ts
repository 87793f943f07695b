import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failingPrimaryCases } from "./replication/failing-primary.ts";
import { initialReplicaCases } from "./replication/initial-replicas.ts";
import { replicaCases } from "./replication/replicas.ts";
import { createReplicationUnderTest } from "./replication/replication-under-test.ts";
import { switchoverCases } from "./replication/switchover.ts";
import { synchronousCases } from "./replication/synchronous.ts";
import { createSynchronousUnderTest } from "./replication/synchronous-under-test.ts";

/** One platform for all short cases of services of several nodes; longer ones have files of their own. */
describe("a PostgreSQL of several nodes", () => {
  const its = createReplicationUnderTest();
  const orders = createSynchronousUnderTest(its);
  beforeAll(async () => {
    await its.start();
    orders.begin();
  });
  afterAll(its.remove);

  initialReplicaCases(its);
  replicaCases(its);
  switchoverCases(its);

  it("has lost no acknowledged row", async () => {
    expect(await its.writer.missing()).toEqual([]);
  });

  failingPrimaryCases(its);
  synchronousCases(its, orders);
});

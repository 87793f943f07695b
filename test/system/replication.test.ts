import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fromTheStartCases } from "./replication/from-the-start.ts";
import { poolerCases } from "./replication/pooler.ts";
import { replicaCases } from "./replication/replicas.ts";
import { createReplicationUnderTest } from "./replication/replication-under-test.ts";
import { switchoverCases } from "./replication/switchover.ts";

describe("a PostgreSQL of several nodes", () => {
  const its = createReplicationUnderTest();
  beforeAll(() => its.start());
  afterAll(its.remove);

  fromTheStartCases(its);
  replicaCases(its);
  poolerCases(its);
  switchoverCases(its);

  it("has lost no row that was acknowledged", async () => {
    await its.stopWriting();
    expect(await its.writer.missing()).toEqual([]);
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OperationJson, ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { rowsOf, startNodeWriters } from "./node-writers.ts";
import { createFailures, failing } from "./failures.ts";
import type { ReplicationUnderTest } from "./replication-under-test.ts";
import type { SynchronousUnderTest } from "./synchronous-under-test.ts";

/** Cases of synchronous replication, with a separate service on the platform. */
export function synchronousCases(on: ReplicationUnderTest, fixture: SynchronousUnderTest): void {
  describe("a PostgreSQL whose commits wait for a replica", () => {
    const { path, query, now, replicaNow, writesContinue, isProtected } = fixture;
    beforeAll(fixture.started);
    afterAll(fixture.end);

    it("waits for a replica as soon as it is created, and names the replica", async () => {
      const { replication } = await now();
      const { hostname } = await replicaNow();
      expect(replication).toMatchObject({ mode: "sync", standby_names: [hostname] });
      await isProtected();
      const [row] = await query("SHOW synchronous_commit");
      expect(row).toEqual({ synchronous_commit: "on" });
    });

    it("loses no acknowledged row in a switchover", async () => {
      const replica = await replicaNow();
      const response = await on.platform.rest.post<OperationJson>(path(`/nodes/${replica.id}/failover`), {});
      expectStatus(response, 202);
      await on.services.settled(fixture.orders.service.id, "Running");
      expect((await now()).primary_node_id).toBe(replica.id);
      await writesContinue();
      await isProtected();
      expect(await fixture.writer.missing()).toEqual([]);
    });

    it("loses no acknowledged row when its machine is killed at each start", async () => {
      const { nodes } = await now();
      await query("CREATE TABLE sides (host text)");
      const nodeWriters = startNodeWriters(
        nodes.map(({ hostname }) => hostname),
        rowsOf(on.platform, fixture.orders),
      );
      const figures: string[] = [];
      const { failsOver, keepKilling } = createFailures(failing(on, fixture.orders), () => nodeWriters, figures);
      try {
        await failsOver("machine killed again and again, synchronous", keepKilling);
      } finally {
        await nodeWriters.stop();
      }
      console.log(figures.join("\n"));
      await isProtected();
      expect(await fixture.writer.missing()).toEqual([]);
    });

    it("retains its last synchronous replica", async () => {
      const { id } = await replicaNow();
      const refused = expectStatus(await on.platform.rest.delete<ProblemJson>(path(`/nodes/${id}`)), 409).json;
      expect(refused.detail).toContain("set replication_mode to async");
    });

    releaseCases(on, fixture);
  });
}

/** Last case, after which commits wait for no replica, and nothing is written. */
export function releaseCases(
  on: Pick<ReplicationUnderTest, "platform" | "services">,
  fixture: SynchronousUnderTest,
): void {
  const { path, query, replicaNow, setMode } = fixture;

  it("releases its replica in asynchronous mode", async () => {
    expect((await setMode("async")).replication).toMatchObject({ mode: "async" });
    await waitUntil("commits wait for no replica", async () => {
      const [row] = await query("SHOW synchronous_standby_names");
      return row?.["synchronous_standby_names"] === "";
    });
    expectStatus(await on.platform.rest.delete(path(`/nodes/${(await replicaNow()).id}`)), 202);
    await on.services.settled(fixture.orders.service.id, "Running");
    const refused = await on.platform.rest.patch<ProblemJson>(path(), { replication_mode: "sync" });
    expect(expectStatus(refused, 422).json.detail).toContain("needs a replica");
    await fixture.stopWriting();
    expect(await fixture.writer.missing()).toEqual([]);
  });
}

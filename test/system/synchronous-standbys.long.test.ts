import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ServiceJson, withPrimary } from "@holdfast/testing/api/service-json.ts";
import { findBelow, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createReplicationUnderTest } from "./replication/replication-under-test.ts";

describe("a PostgreSQL whose commits wait for one of two replicas", () => {
  const fixture = createReplicationUnderTest();
  const service = () => fixture.services.get(fixture.main.service.id);
  const wait = { withinMs: 120_000, describe: () => fixture.services.describe(fixture.main.service.id) };

  beforeAll(async () => {
    await fixture.start();
    await fixture.addReplica();
    await fixture.addReplica();
    expectStatus(await fixture.platform.rest.patch<ServiceJson>(fixture.path(), { replication_mode: "sync" }), 200);
    await untilProtected();
  });
  afterAll(() => fixture.remove());

  async function untilProtected(): Promise<void> {
    await waitUntil(
      "commits wait for either",
      async () => {
        const { replication, primary_node_id: primary, health } = withPrimary(await service());
        const [row] = await fixture.queryNode(primary, "SHOW synchronous_standby_names");
        const names = String(row?.["synchronous_standby_names"]);
        const isBoth = replication?.standby_names.length === 2 && names.startsWith("ANY 1") && names.includes(",");
        return isBoth && replication.healthy && health.status === "healthy";
      },
      wait,
    );
  }

  async function writesContinue(): Promise<void> {
    const before = fixture.writer.acknowledged;
    await waitUntil("writes continue", () => fixture.writer.acknowledged > before + 20, wait);
  }

  /** Pauses all processes of the node's machine during `run`. */
  async function without(nodeId: string, run: () => Promise<void>): Promise<void> {
    const launcher = fixture.platform.processes().machines.find(({ id }) => id === nodeId)?.launcher ?? 0;
    const pids = [launcher, ...findBelow(launcher)];
    for (const pid of pids) killImmediately(pid, "SIGSTOP");
    try {
      await run();
    } finally {
      for (const pid of pids) killImmediately(pid, "SIGCONT");
    }
    await waitUntil("it streams again", async () => (await fixture.statusOf(nodeId)).sync_state === "streaming", wait);
  }

  it("continues to commit while one replica is absent, and still waits for the other", async () => {
    const [paused] = (await service()).nodes.filter(({ role }) => role === "replica");
    if (paused === undefined) throw new Error("the service has no replica");
    await without(paused.id, async () => {
      await writesContinue();
      await waitUntil(
        "only the other one is waited for",
        async () => {
          const names = (await service()).replication?.standby_names ?? [];
          return names.length === 1 && !names.includes(paused.hostname);
        },
        wait,
      );
      await writesContinue();
      const { status, primary_node_id: primary } = withPrimary(await service());
      const [row] = await fixture.queryNode(primary, "SHOW synchronous_standby_names");
      expect({ status, waits: row?.["synchronous_standby_names"] !== "" }).toEqual({ status: "Running", waits: true });
    });
    await untilProtected();
  });

  it("promotes the replica that has each commit once the primary is silent, and loses none", async () => {
    const { primary_node_id: old, term } = withPrimary(await service());
    await without(old, async () => {
      await waitUntil("another one is the primary", async () => (await service()).primary_node_id !== old, wait);
      await writesContinue();
    });
    expect((await service()).term).toBe(term + 1);
    await untilProtected();
    await fixture.stopWriting();
    expect(await fixture.writer.missing()).toEqual([]);
  });
});

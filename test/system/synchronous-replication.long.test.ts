import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReplicationStatus } from "@holdfast/sdk/index.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { createServices, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { releaseCases } from "./replication/synchronous.ts";
import { createSynchronousUnderTest } from "./replication/synchronous-under-test.ts";

describe("a PostgreSQL whose commits wait for an absent replica", () => {
  let platform: Platform | undefined;
  let services: Services | undefined;
  const on = {
    get platform(): Platform {
      if (platform === undefined) throw new Error("the platform was not started");
      return platform;
    },
    get services(): Services {
      return (services ??= createServices(on.platform));
    },
  };
  const fixture = createSynchronousUnderTest(on);
  const { path, query, now, replicaNow, writesContinue, isProtected, setMode } = fixture;
  beforeAll(async () => {
    platform = await startPlatform();
    fixture.begin();
    await fixture.started();
    await isProtected();
  });
  afterAll(async () => {
    fixture.end();
    await platform?.remove();
  });

  /** Kills the replica's engine and pauses its agent, which therefore cannot start another one, during `run`. */
  async function withoutReplica(run: () => Promise<void>): Promise<void> {
    const { id } = await replicaNow();
    const machine = on.platform.processes().machines.find((each) => each.id === id);
    const owners = [machine?.keeper, ...(machine?.agents ?? [])].filter((pid) => pid !== undefined);
    for (const pid of owners) killImmediately(pid, "SIGSTOP");
    try {
      killImmediately(machine?.engine ?? 0);
      await run();
    } finally {
      for (const pid of owners) killImmediately(pid, "SIGCONT");
    }
    await waitUntil("the replica streams again", async () => {
      const status = await on.platform.rest.get<ReplicationStatus>(path(`/nodes/${id}/replication-status`));
      return status.json.sync_state === "streaming";
    });
  }

  it("waits for no replica once its only one is absent for a while, and for it again when it is back", async () => {
    await withoutReplica(async () => {
      await waitUntil("commits wait for no replica", async () => (await now()).replication?.standby_names.length === 0);
      await writesContinue();
      expect((await now()).replication).toMatchObject({ mode: "sync", healthy: false });
    });
    await isProtected();
  });

  it("waits without a limit in its strict mode", async () => {
    expect((await setMode("sync_strict")).replication).toMatchObject({ mode: "sync_strict" });
    await isProtected();
    await withoutReplica(async () => {
      await waitUntil("a commit waits", async () => {
        const waiting = await query("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
        return waiting.length > 0;
      });
      // The platform's own probe waits for no replica: the primary is alive.
      await waitUntil("the replica is reported missing", async () => (await now()).replication?.healthy === false);
      const { status, replication, health } = await now();
      expect({ status, names: replication?.standby_names.length }).toEqual({ status: "Running", names: 1 });
      expect(health.status).not.toBe("unhealthy");
      expect(await query("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'")).not.toEqual([]);
    });
    await writesContinue();
  });

  releaseCases(on, fixture);
});

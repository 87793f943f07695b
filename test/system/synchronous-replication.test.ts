import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReplicationStatus } from "../../sdk/src/index.ts";
import { type AcknowledgedWriter, writeRows } from "../faults/acknowledged-writer.ts";
import { queryOnce } from "../support/api/clients.ts";
import type { OperationJson, ProblemJson, ServiceJson } from "../support/api/service-json.ts";
import { type Platform, startPlatform } from "../support/platform/platform.ts";
import { killAtOnce } from "../support/platform/platform-processes.ts";
import { createServices, expectStatus, type RunningService, type Services } from "../support/platform/services.ts";
import { waitUntil } from "../support/wait-until.ts";

describe("a PostgreSQL whose commits wait for a replica", () => {
  const writing = new AbortController();
  let platform: Platform;
  let services: Services;
  let orders: RunningService;
  let writer: AcknowledgedWriter;
  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    orders = await services.createRunning("orders", { node_count: 2, replication_mode: "sync" });
    writer = await writeRows(platform, orders, writing.signal);
  });
  afterAll(async () => {
    writing.abort();
    await platform?.remove();
  });

  const path = (rest = "") => `/managed-services/${orders.service.id}${rest}`;
  const query = (sql: string) => queryOnce<Record<string, unknown>>(platform, orders.connection, orders, sql);
  const now = () => services.get(orders.service.id);
  const replicaNow = async () => {
    const replica = (await now()).nodes.find(({ role }) => role === "replica");
    if (replica === undefined) throw new Error("the service has no replica");
    return replica;
  };
  const writesGoOn = async () => {
    const before = writer.acknowledged;
    await waitUntil("writes go on", async () => writer.acknowledged > before + 5);
  };
  const isProtected = () =>
    waitUntil("commits wait for the replica", async () => {
      const [row] = await query("SHOW synchronous_standby_names");
      return row?.["synchronous_standby_names"] !== "" && (await now()).replication?.healthy === true;
    });
  const setMode = async (mode: string) =>
    expectStatus(await platform.rest.patch<ServiceJson>(path(), { replication_mode: mode }), 200).json;

  /** While the replica's engine is dead, and nobody on its machine can start another one. */
  async function withoutReplica(run: () => Promise<void>): Promise<void> {
    const { id } = await replicaNow();
    const machine = platform.processes().machines.find((each) => each.id === id);
    const owners = [machine?.keeper, ...(machine?.agents ?? [])].filter((pid) => pid !== undefined);
    for (const pid of owners) killAtOnce(pid, "SIGSTOP");
    try {
      killAtOnce(machine?.engine ?? 0);
      await run();
    } finally {
      for (const pid of owners) killAtOnce(pid, "SIGCONT");
    }
    await waitUntil("the replica streams again", async () => {
      const status = await platform.rest.get<ReplicationStatus>(path(`/nodes/${id}/replication-status`));
      return status.json.sync_state === "streaming";
    });
  }

  it("waits from the end of its creation on, and says for whom", async () => {
    const { replication } = await now();
    const { hostname } = await replicaNow();
    expect(replication).toMatchObject({ mode: "sync", standby_names: [hostname] });
    await isProtected();
    const [row] = await query("SHOW synchronous_commit");
    expect(row).toEqual({ synchronous_commit: "on" });
  });

  it("loses no acknowledged row in a switchover", async () => {
    const replica = await replicaNow();
    const asked = await platform.rest.post<OperationJson>(path(`/nodes/${replica.id}/failover`), {});
    expectStatus(asked, 202);
    await services.settled(orders.service.id, "Running");
    expect((await now()).primary_node_id).toBe(replica.id);
    await writesGoOn();
    await isProtected();
    expect(await writer.missing()).toEqual([]);
  });

  it("keeps its last synchronous replica", async () => {
    const { id } = await replicaNow();
    const refused = expectStatus(await platform.rest.delete<ProblemJson>(path(`/nodes/${id}`)), 409).json;
    expect(refused.detail).toContain("set replication_mode to async");
  });

  it("waits for nobody once its replica is gone for a while, and for it again when it is back", async () => {
    await withoutReplica(async () => {
      await waitUntil("nobody is waited for", async () => (await now()).replication?.standby_names.length === 0);
      await writesGoOn();
      expect((await now()).replication).toMatchObject({ mode: "sync", healthy: false });
    });
    await isProtected();
  });

  it("waits however long that takes in its strict mode", async () => {
    expect((await setMode("sync_strict")).replication).toMatchObject({ mode: "sync_strict" });
    await isProtected();
    await withoutReplica(async () => {
      await waitUntil("a commit waits", async () => {
        const waiting = await query("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
        return waiting.length > 0;
      });
      // The platform's own probe waits for nobody: the primary is alive.
      await waitUntil("the replica is told to be missing", async () => (await now()).replication?.healthy === false);
      const { status, replication, health } = await now();
      expect({ status, names: replication?.standby_names.length }).toEqual({ status: "Running", names: 1 });
      expect(health.status).not.toBe("unhealthy");
      expect(await query("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'")).not.toEqual([]);
    });
    await writesGoOn();
  });

  it("lets its replica go in the mode that waits for none", async () => {
    expect((await setMode("async")).replication).toMatchObject({ mode: "async" });
    await waitUntil("nobody is waited for", async () => {
      const [row] = await query("SHOW synchronous_standby_names");
      return row?.["synchronous_standby_names"] === "";
    });
    expectStatus(await platform.rest.delete(path(`/nodes/${(await replicaNow()).id}`)), 202);
    await services.settled(orders.service.id, "Running");
    const refused = await platform.rest.patch<ProblemJson>(path(), { replication_mode: "sync" });
    expect(expectStatus(refused, 422).json.detail).toContain("needs a replica");
    writing.abort();
    await writer.done;
    expect(await writer.missing()).toEqual([]);
  });
});

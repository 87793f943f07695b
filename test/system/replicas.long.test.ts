import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withPrimary } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { poolerCases } from "./replication/pooler.ts";
import { createReplicationUnderTest } from "./replication/replication-under-test.ts";
import { whilePaused } from "./service-lifecycle/lifecycle-under-test.ts";

interface Events {
  readonly events: readonly { readonly data: { readonly node_id?: string; readonly missing?: readonly string[] } }[];
}

/** Slow cases of replicas; the others are in replication.test.ts. */
describe("a PostgreSQL of several nodes", () => {
  const fixture = createReplicationUnderTest();
  beforeAll(async () => {
    await fixture.start();
    await fixture.addReplica();
    await waitUntil("replication is healthy", async () => {
      return (await fixture.services.get(fixture.main.service.id)).replication?.healthy === true;
    });
  });
  afterAll(fixture.remove);

  it("is created with its replicas once all of them follow its primary", async () => {
    const { service } = await fixture.services.createRunning("three", { node_count: 3, replication_mode: "async" });
    expect(service.nodes.map(({ role, status }) => `${role} ${status}`)).toEqual([
      "primary Running",
      "replica Running",
      "replica Running",
    ]);
    const replicas = service.nodes.slice(1);
    expect(service).toMatchObject({
      primary_node_id: service.nodes[0]?.id,
      term: 1,
      replication: { mode: "async", standby_names: replicas.map(({ hostname }) => hostname) },
    });
    const operations = await fixture.services.operations(service.id);
    expect(operations.map(({ type, status }) => `${type} ${status}`)).toEqual(["create completed"]);
    const path = `/managed-services/${service.id}`;
    for (const { id } of replicas) {
      const { json } = expectStatus(await fixture.platform.rest.get(`${path}/nodes/${id}/replication-status`), 200);
      expect(json).toMatchObject({ role: "replica", connected: true });
    }
    await fixture.services.delete(service.id);
  });

  it("reports a replica that has been silent for a while, and its service", async () => {
    const { nodes } = await fixture.services.get(fixture.main.service.id);
    const replica = nodes.find(({ role }) => role === "replica");
    const agent = fixture.platform.processes().machines.find(({ id }) => id === replica?.id)?.agent;
    const eventsOf = async (type: string) => {
      const { json } = await fixture.platform.rest.get<Events>(fixture.path(`/events?type=${type}`));
      return json.events.map(({ data }) => data);
    };
    await whilePaused(agent, async () => {
      await waitUntil("both are reported", async () => {
        const [unhealthy] = await eventsOf("node.unhealthy");
        const [degraded] = await eventsOf("service.replication_degraded");
        return unhealthy?.node_id === replica?.id && degraded?.missing?.join() === replica?.hostname;
      });
      const { replication, status } = await fixture.services.get(fixture.main.service.id);
      expect({ status, replication }).toMatchObject({ status: "Running", replication: { healthy: false } });
    });
    await waitUntil("replication is healthy again", async () => {
      return (await fixture.services.get(fixture.main.service.id)).replication?.healthy === true;
    });
  });

  it("retains its stream while no client may connect from its address", async () => {
    const {
      nodes,
      primary_node_id: primary,
      allowed_cidrs: before,
    } = withPrimary(await fixture.services.get(fixture.main.service.id));
    const replica = nodes.find(({ role }) => role === "replica")?.id ?? "";
    const { since } = await fixture.statusOf(replica);
    const allow = async (cidrs: readonly string[]) =>
      expectStatus(await fixture.platform.rest.patch(fixture.path(), { allowed_cidrs: cidrs }), 200);
    const isOpen = () =>
      fixture.queryNode(primary, "SELECT 1").then(
        () => true,
        () => false,
      );
    const client = await fixture.connectNode(primary);
    let isEnded = false;
    client.on("error", () => undefined);
    client.on("end", () => {
      isEnded = true;
    });
    await allow(["192.0.2.0/24"]);
    try {
      await waitUntil("no client is admitted", async () => !(await isOpen()));
      await waitUntil("the sessions of clients are ended", () => isEnded);
      expect(await fixture.statusOf(replica)).toMatchObject({ connected: true, sync_state: "streaming", since });
    } finally {
      await allow(before);
    }
    await waitUntil("clients are admitted", isOpen);
  });

  it("follows settings, a restart and a stop of its service", async () => {
    const { id } = fixture.main.service;
    // After the restart the former replica is the primary.
    const streams = async () => {
      const replica = (await fixture.services.get(id)).nodes.find(({ role }) => role === "replica");
      return replica !== undefined && (await fixture.statusOf(replica.id)).sync_state === "streaming";
    };
    const change = { parameters: { wal_level: "logical" } };
    const patched = await fixture.platform.rest.patch(fixture.path("/configuration"), change);
    expectStatus(patched, 200);
    await fixture.services.verb(id, "restart");
    for (const node of (await fixture.services.get(id)).nodes)
      expect(await fixture.queryNode(node.id, "SHOW wal_level")).toEqual([{ wal_level: "logical" }]);
    await waitUntil("the replica streams after the restart", streams);
    await fixture.services.verb(id, "stop");
    await fixture.services.verb(id, "start");
    await waitUntil("the replica streams after the start", streams);
  });

  poolerCases(fixture);

  it("has lost no acknowledged row", async () => {
    await fixture.stopWriting();
    expect(await fixture.writer.missing()).toEqual([]);
  });
});

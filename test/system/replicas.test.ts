import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectStatus } from "../support/platform/services.ts";
import { waitUntil } from "../support/wait-until.ts";
import { createReplicationUnderTest } from "./replication/replication-under-test.ts";
import { whileStanding } from "./service-lifecycle/lifecycle-under-test.ts";

interface Events {
  readonly events: readonly { readonly data: { readonly node_id?: string; readonly missing?: readonly string[] } }[];
}

/** What takes its time with replicas; what else they do is in replication.test.ts. */
describe("a PostgreSQL of several nodes", () => {
  const its = createReplicationUnderTest();
  beforeAll(async () => {
    await its.start();
    await its.addReplica();
    await waitUntil("replication is healthy", async () => {
      return (await its.services.get(its.main.service.id)).replication?.healthy === true;
    });
  });
  afterAll(its.remove);

  it("is made with its replicas when all of them follow its primary", async () => {
    const { service } = await its.services.createRunning("three", { node_count: 3, replication_mode: "async" });
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
    const operations = await its.services.operations(service.id);
    expect(operations.map(({ type, status }) => `${type} ${status}`)).toEqual(["create completed"]);
    const path = `/managed-services/${service.id}`;
    for (const { id } of replicas) {
      const { json } = expectStatus(await its.platform.rest.get(`${path}/nodes/${id}/replication-status`), 200);
      expect(json).toMatchObject({ role: "replica", connected: true });
    }
    await its.services.delete(service.id);
  });

  it("tells of a replica that has been silent for a while, and of the service", async () => {
    const { nodes } = await its.services.get(its.main.service.id);
    const replica = nodes.find(({ role }) => role === "replica");
    const agent = its.platform.processes().machines.find(({ id }) => id === replica?.id)?.agent;
    const eventsOf = async (type: string) => {
      const { json } = await its.platform.rest.get<Events>(its.path(`/events?type=${type}`));
      return json.events.map(({ data }) => data);
    };
    await whileStanding(agent, async () => {
      await waitUntil("both are told", async () => {
        const [unhealthy] = await eventsOf("node.unhealthy");
        const [degraded] = await eventsOf("service.replication_degraded");
        return unhealthy?.node_id === replica?.id && degraded?.missing?.join() === replica?.hostname;
      });
      const { replication, status } = await its.services.get(its.main.service.id);
      expect({ status, replication }).toMatchObject({ status: "Running", replication: { healthy: false } });
    });
    await waitUntil("replication is healthy again", async () => {
      return (await its.services.get(its.main.service.id)).replication?.healthy === true;
    });
  });

  it("has lost no row that was acknowledged", async () => {
    await its.stopWriting();
    expect(await its.writer.missing()).toEqual([]);
  });
});

import type { Connection } from "mysql2/promise";
import { describe, expect, it } from "vitest";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { ConnectionJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { ReplicatedShop } from "./replicated-shop.ts";

const port = 3307;

/** Cases of the pooler of a MySQL with a replica. */
export function poolerCases(shop: () => ReplicatedShop): void {
  const update = (body: object) => shop().platform.rest.patch<ServiceJson & ProblemJson>(shop().path(""), body);
  const connectionNow = async () =>
    expectStatus(await shop().platform.rest.get<ConnectionJson>(shop().path("/connection")), 200).json;
  const describeIt = () => shop().services.describe(shop().shop.service.id);
  const addressOfNode = async (nodeId: string) => {
    const { nodes } = await shop().services.get(shop().shop.service.id);
    return addressOf(shop().platform, nodes.find(({ id }) => id === nodeId)?.hostname ?? "");
  };
  /** A client that the pooler at this address admits, by default at the address of the service's name. */
  const admitted = (at?: string) =>
    waitUntil(
      "the pooler admits a client",
      () =>
        shop()
          .open({ port, ...(at !== undefined && { at }) })
          .catch(() => undefined),
      { describe: describeIt, withinMs: 30_000 },
    );
  const refused = (at?: string) =>
    waitUntil("the pooler admits no client", async () => {
      const client = await shop()
        .open({ port, ...(at !== undefined && { at }) })
        .catch(() => undefined);
      client?.destroy();
      return client === undefined;
    });
  const ended = (client: Connection) =>
    new Promise<void>((resolve) => {
      for (const event of ["error", "end"]) client.once(event, () => resolve());
    });
  const serverOf = async (client: Connection) => {
    const [rows] = await client.query("SELECT @@server_uuid AS server, @@read_only AS refuses");
    return (rows as { server: string; refuses: number }[])[0];
  };

  describe("its pooler", () => {
    it("has no modes", async () => {
      const response = expectStatus(await update({ pooler: { enabled: true, mode: "transaction" } }), 400).json;
      expect(response.errors).toMatchObject([{ field: "pooler.mode", code: "not_supported" }]);
    });

    it("starts without a restart of the engine, and forwards to the primary from each node", async () => {
      const { primary, replica } = await shop().rolesNow();
      const engine = shop().engineOf(primary);
      expect((await connectionNow()).pooled_uri).toBeNull();
      const updated = expectStatus(await update({ pooler: { enabled: true } }), 200).json;
      expect(updated).toMatchObject({ pooler: { enabled: true, mode: null } });
      const { pooled_uri: uri, uri: direct } = await connectionNow();
      expect(uri).toBe(direct.replace(":3306/", ":3307/"));
      const direct3306 = await shop().open();
      const expected = await serverOf(direct3306);
      direct3306.destroy();
      for (const at of [undefined, await addressOfNode(primary), await addressOfNode(replica)]) {
        const client = await admitted(at);
        expect(await serverOf(client)).toEqual(expected);
        await client.query("CREATE TABLE IF NOT EXISTS pooled (n INT PRIMARY KEY)");
        client.destroy();
      }
      expect(shop().engineOf(primary)).toBe(engine);
    });

    it("ends its clients in a switchover, and forwards later ones to the new primary from the address of the former one", async () => {
      const { primary, replica } = await shop().rolesNow();
      const former = await addressOfNode(primary);
      const clients = [await admitted(former), await admitted(await addressOfNode(replica))];
      const over = clients.map(ended);
      await shop().follows(replica);
      // The fixture writes without a pause, and a switchover is refused while the replica lacks a write.
      await waitUntil("the switchover begins", async () => {
        const response = await shop().platform.rest.post(shop().path(`/nodes/${replica}/failover`), {});
        return response.status === 202;
      });
      await shop().services.settled(shop().shop.service.id, "Running");
      await Promise.all(over);
      expect(await shop().rolesNow()).toMatchObject({ primary: replica });
      await waitUntil(
        "a client at the former primary writes",
        async () => {
          const client = await shop()
            .open({ port, at: former })
            .catch(() => undefined);
          try {
            await client?.query("REPLACE INTO pooled VALUES (1)");
            return client !== undefined;
          } finally {
            client?.destroy();
          }
        },
        { describe: describeIt, withinMs: 30_000 },
      );
    });

    it("enforces the allow-list for clients of each node, also for open sessions", async () => {
      const { primary, replica } = await shop().rolesNow();
      const addresses = [await addressOfNode(primary), await addressOfNode(replica)];
      const { allowed_cidrs: before } = await shop().services.get(shop().shop.service.id);
      const clients = await Promise.all(addresses.map(admitted));
      const over = clients.map(ended);
      expectStatus(await update({ allowed_cidrs: ["203.0.113.0/24"] }), 200);
      await Promise.all(over);
      for (const at of addresses) await refused(at);
      expectStatus(await update({ allowed_cidrs: before }), 200);
      for (const at of addresses) (await admitted(at)).destroy();
    });

    it("stops with its clients, and clients of the engine's own port continue", async () => {
      const client = await admitted();
      const over = ended(client);
      const direct = await shop().open();
      expectStatus(await update({ pooler: { enabled: false } }), 200);
      await over;
      await refused();
      expect((await connectionNow()).pooled_uri).toBeNull();
      await direct.query("SELECT 1");
      direct.destroy();
    });
  });
}

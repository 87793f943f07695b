import { rmSync } from "node:fs";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { drilled } from "@holdfast/testing/platform/drills.ts";
import { isFailoverCandidate } from "@holdfast/testing/platform/failover-candidate.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { reserveMillisecond } from "@holdfast/testing/reserve-millisecond.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Collection } from "mongodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { codeOf, documentsOnce, followDocuments, openDocuments } from "./mongodb/mongodb-service.ts";

const longMs = 240_000;
const skip = await requireRecipes(import.meta.filename, "mongodb");

interface Item {
  readonly _id: string;
  readonly written?: boolean;
}

describe.skipIf(skip !== undefined)("a service of MongoDB's API with two nodes", () => {
  let platform: Platform;
  let services: Services;
  let docs: RunningService;

  beforeAll(async () => {
    platform = await startPlatform({ environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1" } });
    services = createServices(platform);
    docs = await services.createRunning("docs", {
      database_type: "mongodb",
      node_count: 2,
      replication_mode: "sync",
    });
    await inItems((items) => items.insertOne({ _id: "one" }));
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  const path = (rest = "") => `/managed-services/${docs.service.id}${rest}`;
  const inItems = <T>(work: (items: Collection<Item>) => Promise<T>, service = docs) =>
    documentsOnce(platform, service, (database) => work(database.collection<Item>("items")));
  const nodesNow = async () => {
    const { nodes } = await services.get(docs.service.id);
    return {
      primary: nodes.find(({ role }) => role === "primary"),
      replica: nodes.find(({ role }) => role === "replica"),
    };
  };

  it("reads on its replica, where writes are refused", async () => {
    const { replica } = await nodesNow();
    const database = await openDocuments(platform, docs, { host: replica?.hostname ?? "" });
    const items = database.collection<Item>("items");
    await waitUntil("the replica has the document", async () => (await items.countDocuments()) === 1);
    // NotWritablePrimary: drivers look for the primary.
    expect(await codeOf(items.insertOne({ _id: "x" }))).toBe(10_107);
    await database.client.close();
  });

  it(
    "promotes its replica in a switchover, and adds a node",
    async () => {
      const { primary, replica } = await nodesNow();
      await waitUntil("the primary counts on its replica", () =>
        isFailoverCandidate(platform.directory, docs.service.id, primary?.id ?? ""),
      );
      // The stop of a primary waits for its archive, which is slow to end while it starts.
      const window = async () => (await services.get(docs.service.id)).backups?.restorable;
      await waitUntil("the log continues from a base", async () => (await window()) != null, { withinMs: longMs });
      const open = followDocuments(platform, docs);
      const items = open.collection<Item>("items");
      await items.insertOne({ _id: "before the switchover" });
      expectStatus(await platform.rest.post(path(`/nodes/${replica?.id}/failover`), {}), 202);
      await services.settled(docs.service.id, "Running", longMs);
      expect((await nodesNow()).primary?.id).toBe(replica?.id);
      const removed = () =>
        items.deleteOne({ _id: "before the switchover" }).then(
          ({ acknowledged }) => acknowledged,
          () => false,
        );
      await waitUntil("the open client writes to the new primary", removed);
      await open.client.close();
      expectStatus(await platform.rest.post(path("/nodes"), { role: "replica" }), 202);
      await services.settled(docs.service.id, "Running", longMs);
      const { nodes } = await services.get(docs.service.id);
      expect(nodes.filter(({ role }) => role === "replica")).toHaveLength(2);
      const added = nodes.find(({ id }) => id !== primary?.id && id !== replica?.id);
      const database = await openDocuments(platform, docs, { host: added?.hostname ?? "" });
      const count = () => database.collection<Item>("items").countDocuments();
      await waitUntil("the new replica has the document", async () => (await count()) === 1);
      await database.client.close();
      expectStatus(await platform.rest.delete(path(`/nodes/${added?.id}`)), 202);
      await services.settled(docs.service.id, "Running", longMs);
    },
    longMs,
  );

  it(
    "is survived by a client that retries, with every acknowledged document, when its primary loses its data",
    async () => {
      const { primary, replica } = await nodesNow();
      await waitUntil("the primary counts on its replica", () =>
        isFailoverCandidate(platform.directory, docs.service.id, primary?.id ?? ""),
      );
      const acknowledged: string[] = [];
      const write = async (_id: string) => {
        const upsert = () =>
          inItems((items) => items.updateOne({ _id }, { $set: { written: true } }, { upsert: true })).catch(
            () => undefined,
          );
        await waitUntil(`${_id} is written`, upsert);
        acknowledged.push(_id);
      };
      for (let i = 0; i < 10; i += 1) await write(`before ${i}`);
      const machine = platform.processes().machines.find(({ id }) => id === primary?.id);
      rmSync(`/proc/${machine?.engine}/cwd/global/pg_control`);
      killImmediately(machine?.engine ?? 0);
      for (let i = 0; i < 10; i += 1) await write(`after ${i}`);
      const found = new Set((await inItems((items) => items.find().toArray())).map(({ _id }) => _id));
      expect(acknowledged.filter((name) => !found.has(name))).toEqual([]);
      expect((await nodesNow()).primary?.id).toBe(replica?.id);
    },
    longMs,
  );

  it(
    "is restored to a point in time, with its documents and other passwords",
    async () => {
      await services.settled(docs.service.id, "Running", longMs);
      const window = async () => (await services.get(docs.service.id)).backups?.restorable;
      await waitUntil("the log continues from a base", async () => (await window()) != null, { withinMs: longMs });
      await inItems((items) => items.insertOne({ _id: "kept" }));
      const count = await inItems((items) => items.countDocuments());
      const point = new Date(await reserveMillisecond()).toISOString();
      await inItems((items) => items.deleteMany({}));
      await waitUntil("the point can be restored", async () => ((await window())?.to ?? "") > point, {
        withinMs: longMs,
      });
      const body = { restore_point: point, target_service_name: "before", node_count: 1 };
      const { id } = expectStatus(await platform.rest.post<ServiceJson>(path("/backups/restore"), body), 202).json;
      await services.settled(id, "Running", longMs);
      const copy = await services.open(id);
      expect(await inItems((items) => items.countDocuments(), copy)).toBe(count);
      expect(await inItems((items) => items.findOne({ _id: "kept" }), copy)).toEqual({ _id: "kept" });
      const former = { ...copy, password: docs.password };
      await expect(inItems((items) => items.findOne(), former)).rejects.toThrow("Authentication failed");
    },
    longMs,
  );

  it(
    "is forked with its users' new passwords, and a drill checks its backup",
    async () => {
      const { id } = expectStatus(
        await platform.rest.post<ServiceJson>(path("/fork"), { name: "forked", node_count: 1 }),
        202,
      ).json;
      await services.settled(id, "Running", longMs);
      const copy = await services.open(id);
      expect(copy.password).not.toBe(docs.password);
      await inItems((items) => items.insertOne({ _id: "in the fork" }), copy);
      expect(await inItems((items) => items.findOne({ _id: "in the fork" }))).toBeNull();
      const started = await platform.rest.post<{ id: string }>(path("/backups/drill"));
      const drill = await drilled(platform, docs.service.id, expectStatus(started, 202).json.id);
      expect(drill).toMatchObject({ status: "completed", error: null });
    },
    longMs,
  );
});

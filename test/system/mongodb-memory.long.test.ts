import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import type { Collection } from "mongodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDocuments } from "./mongodb/mongodb-service.ts";

const longMs = 300_000;
const skip = await requireRecipes(import.meta.filename, "mongodb");

interface Large {
  readonly _id: number;
  readonly content: Buffer;
}
const contentBytes = 15_000_000;
/** Concurrent commands, whose copies would need more than the memory of the plan. */
const concurrent = 20;

describe.skipIf(skip !== undefined)("a service of MongoDB's API on the smallest plan", () => {
  let platform: Platform;
  let services: Services;
  let docs: RunningService;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    docs = await services.createRunning("docs", { database_type: "mongodb", plan_name: "tier-1", storage_size_gb: 4 });
  }, longMs);
  afterAll(() => platform?.remove());

  const processes = () => {
    const machine = platform.processes().machines.find(({ id }) => id === docs.service.nodes[0]?.id);
    return { engine: machine?.engine, opmsg: machine?.opmsg, documents: machine?.documents };
  };
  async function withMany<T>(work: (items: Collection<Large>) => Promise<T>): Promise<T> {
    const database = await openDocuments(platform, docs, {}, { maxPoolSize: concurrent, promoteBuffers: true });
    try {
      return await work(database.collection<Large>("large"));
    } finally {
      await database.client.close();
    }
  }
  const all = <T>(work: (index: number) => Promise<T>) =>
    Promise.all(Array.from({ length: concurrent }, (_, index) => work(index)));

  it("serves concurrent writes and reads of large documents, one after the other", { timeout: longMs }, async () => {
    const before = processes();
    await withMany(async (items) => {
      await all((_id) => items.insertOne({ _id, content: Buffer.alloc(contentBytes, _id) }));
      for (let round = 0; round < 2; round += 1) {
        const sizes = await all(async (_id) => (await items.findOne({ _id }))?.content.length);
        expect(sizes).toEqual(sizes.map(() => contentBytes));
      }
    });
    await withMany((items) =>
      Promise.all([all((_id) => items.findOne({ _id })), all((_id) => items.deleteOne({ _id }))]),
    );
    expect(processes()).toEqual(before);
    const { checks } = (await services.get(docs.service.id)).health;
    expect(checks.find(({ name }) => name === "memory")).toMatchObject({ status: "healthy", reason: null });
  });
});

import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Collection, MongoClient } from "mongodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { codeOf, openDocuments } from "./mongodb/mongodb-service.ts";

const skip = await requireRecipes(import.meta.filename, "mongodb");

interface Item {
  readonly _id: number;
  readonly name?: string;
  readonly data?: string;
  readonly more?: string;
}

describe.skipIf(skip !== undefined)("a managed service of MongoDB's API", () => {
  let platform: Platform;
  let services: Services;
  let docs: RunningService;
  const clients: MongoClient[] = [];

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    docs = await services.createRunning("docs", { database_type: "mongodb" });
  });
  afterAll(async () => {
    for (const client of clients) await client.close();
    await platform?.remove();
  });

  const path = (rest = "") => `/managed-services/${docs.service.id}${rest}`;
  const processes = () => platform.processes().machines.find(({ id }) => id === docs.service.nodes[0]?.id);

  async function open(login: { user?: string; password?: string } = {}): Promise<Collection<Item>> {
    const database = await openDocuments(platform, docs, login);
    clients.push(database.client);
    return database.collection<Item>("items");
  }
  const reveal = async (user: string) => ({
    user,
    password: expectStatus(
      await platform.rest.post<{ password: string }>(path(`/database-users/${user}/reveal-password`)),
      200,
    ).json.password,
  });

  it("has one port and a URI, and is healthy by each of its processes", async () => {
    const { host } = docs.connection;
    expect(docs.connection).toMatchObject({
      port: 27_017,
      uri: `mongodb://app_user@${host}:27017/defaultdb?tls=true&authSource=admin`,
    });
    expect(docs.connection.listeners.map(({ name, port }) => [name, port])).toEqual([
      ["mongodb", 27_017],
      ["mongodb", 27_017],
    ]);
    const isHealthy = async () => {
      const { status, checks } = (await services.get(docs.service.id)).health;
      const names = checks.map(({ name }) => name);
      return status === "healthy" && ["liveness", "opmsg", "documents"].every((name) => names.includes(name));
    };
    await waitUntil("the checks of all processes are healthy", isHealthy);
  });

  it("serves documents, indexes, cursors, aggregations and bulk writes by name with TLS", async () => {
    const items = await open();
    const many = Array.from({ length: 300 }, (_, index) => ({ _id: index, name: `item ${index % 10}` }));
    expect((await items.insertMany(many)).insertedCount).toBe(300);
    await items.createIndex({ name: 1 });
    expect((await items.find({ name: "item 3" }).batchSize(7).toArray()).length).toBe(30);
    const groups = await items.aggregate([{ $group: { _id: "$name", count: { $sum: 1 } } }]).toArray();
    expect(groups.map((group) => group["count"])).toEqual(Array.from({ length: 10 }, () => 30));
    expect(await codeOf(items.insertOne({ _id: 3 }))).toBe(11_000);
    await items.createIndex({ data: 1 }, { unique: true, sparse: true });
    const bulk = await items.bulkWrite([
      { updateOne: { filter: { _id: 1 }, update: { $set: { data: "one" } } } },
      { deleteOne: { filter: { _id: 2 } } },
      { insertOne: { document: { _id: 300, more: "x".repeat(5_000_000) } } },
    ]);
    expect(bulk).toMatchObject({ modifiedCount: 1, deletedCount: 1, insertedCount: 1 });
    expect((await items.findOne({ _id: 300 }))?.more?.length).toBe(5_000_000);
    expect(await codeOf(items.insertOne({ _id: 301, data: "one" }))).toBe(11_000);
    await items.insertOne({ _id: 302 }, { writeConcern: { w: 0 } });
    expect(await items.findOne({ _id: 302 })).toMatchObject({ _id: 302 });
  });

  it("has users with the rights of their roles", async () => {
    for (const [username, role] of Object.entries({ reader: "readonly", writer: "readwrite" }))
      expectStatus(await platform.rest.post(path("/database-users"), { username, role }), 201);
    const reader = await open(await reveal("reader"));
    expect(await reader.countDocuments({ name: "item 3" })).toBe(30);
    expect(await codeOf(reader.insertOne({ _id: 400 }))).toBe(13);
    expect(await codeOf(reader.aggregate([{ $out: "copy" }]).toArray())).toBe(13);
    expect(await codeOf(reader.drop())).toBe(13);
    const writer = await open(await reveal("writer"));
    expect((await writer.insertOne({ _id: 400 })).insertedId).toBe(400);
    const refused = await open({ user: "writer", password: "wrong" });
    await expect(refused.findOne()).rejects.toThrow("Authentication failed");
    expectStatus(await platform.rest.delete(path("/database-users/writer")), 204);
    const hasEnded = async () => (await codeOf(writer.findOne())) !== undefined;
    await waitUntil("a dropped user's connection ends", hasEnded);
  });

  it("has databases that are created, listed and dropped", async () => {
    expectStatus(await platform.rest.post(path("/databases"), { name: "orders-2026" }), 201);
    const { client } = await openDocuments(platform, docs);
    clients.push(client);
    await client.db("orders-2026").collection("items").insertOne({ a: 1 });
    const names = async () =>
      expectStatus(
        await platform.rest.get<{ databases: { name: string }[] }>(path("/databases")),
        200,
      ).json.databases.map(({ name }) => name);
    expect(await names()).toEqual(["defaultdb", "orders-2026"]);
    expectStatus(await platform.rest.delete(path("/databases/orders-2026")), 204);
    expect(await names()).toEqual(["defaultdb"]);
  });

  it("refuses transactions, change streams and users by MongoDB's codes, and leaves nothing of them", async () => {
    const items = await open();
    const { client } = await openDocuments(platform, docs);
    clients.push(client);
    const session = client.startSession();
    session.startTransaction();
    const inTransaction = client.db("defaultdb").collection<Item>("items").insertOne({ _id: 500 }, { session });
    expect(await codeOf(inTransaction)).toBe(20);
    await session.abortTransaction().catch(() => undefined);
    await session.endSession();
    expect(await items.findOne({ _id: 500 })).toBeNull();
    expect(await codeOf(items.watch().next())).toBe(40_573);
    const admin = client.db("admin");
    expect(await codeOf(admin.command({ createUser: "intruder", pwd: "a secret", roles: ["root"] }))).toBe(13);
    expect(await codeOf(admin.command({ getCmdLineOpts: 1 }))).toBe(59);
    for (const user of ["holdfast", "holdfast_documents", "postgres"]) {
      const refused = await open({ user, password: "any" });
      await expect(refused.findOne()).rejects.toThrow("Authentication failed");
    }
  });

  it("serves again when each of its processes was killed, with all acknowledged documents", async () => {
    const kills = [
      () => processes()?.opmsg,
      ...[0, 1].map((index) => () => processes()?.documents[index]),
      () => processes()?.agent,
      () => processes()?.engine,
    ];
    for (const [index, pidOf] of kills.entries()) {
      const items = await open();
      await items.insertOne({ _id: 600 + index });
      const pid = pidOf() ?? 0;
      killImmediately(pid);
      await waitUntil("the process has ended", () => pidOf() !== pid);
      const count = async () => (await open()).countDocuments({ name: "item 3" });
      expect(await waitUntil("clients read again", () => count().catch(() => undefined))).toBe(30);
    }
    expect(await (await open()).countDocuments({ _id: { $gte: 600 } })).toBe(kills.length);
  });

  it("ends the connections of addresses that leave the allow-list", async () => {
    const items = await open();
    await items.findOne();
    expectStatus(await platform.rest.patch(path(), { allowed_cidrs: ["10.99.0.0/16"] }), 200);
    const isRefused = async () => (await codeOf(items.findOne())) !== undefined;
    await waitUntil("the connection ends and no other is admitted", isRefused);
    expectStatus(await platform.rest.patch(path(), { allowed_cidrs: ["127.0.0.0/8"] }), 200);
    const isAdmitted = async () => (await codeOf((await open()).findOne())) === undefined;
    await waitUntil("clients are admitted again", isAdmitted);
  });
});

import { once } from "node:events";
import { connect as connectTls } from "node:tls";
import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { clientListener, openMongodb, targetOf } from "@holdfast/testing/engines/mongodb-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMongodbDriver } from "./driver.ts";

const skip = await requireRecipes(import.meta.filename, "mongodb");

describe.skipIf(skip !== undefined)("what MongoDB's API lacks", () => {
  let machine: EngineMachine;
  let client: ReturnType<typeof openMongodb>;
  let database: ReturnType<typeof client.db>;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    const user = create(EngineUserSchema, {
      username: "app_user",
      role: "admin",
      verifier: scramVerifier("a password"),
    });
    const settings = { users: [user], listeners: [clientListener(port)] };
    machine = await createEngineMachine(async (deps) => createMongodbDriver(deps), "mongodb", "ferretdb-2", settings);
    await machine.bringUp();
    client = openMongodb(targetOf(machine), { user: "app_user", password: "a password" });
    database = client.db("defaultdb");
  });
  afterAll(async () => {
    await client?.close();
    await machine?.remove();
  });

  it("creates no collection in place of a view, or of one with rules", async () => {
    const collections = [
      { viewOn: "base", pipeline: [] },
      { validator: { a: 1 } },
      { capped: true, size: 4_096, max: 2 },
      { timeseries: { timeField: "t" } },
      { collation: { locale: "en", strength: 2 } },
    ];
    for (const options of collections)
      await expect(database.createCollection("lacking", options)).rejects.toMatchObject({ code: 115 });
    expect(await database.listCollections({ name: "lacking" }).toArray()).toEqual([]);
    await database.createCollection("plain");
  });

  it("acknowledges no write for members that a write does not wait for", async () => {
    const items = database.collection<{ _id: number }>("concerns");
    for (const w of [2, 99, "dc2"]) {
      const insert = { insert: "concerns", documents: [{ _id: 1 }], writeConcern: { w, wtimeout: 500 } };
      await expect(database.command(insert)).rejects.toMatchObject({ code: 2 });
    }
    await items.insertOne({ _id: 2 }, { writeConcern: { w: "majority" } });
    expect(await items.find().toArray()).toEqual([{ _id: 2 }]);
  });

  it("has drivers split a batch of more writes than the engine takes", async () => {
    const items = database.collection<{ _id: number }>("many");
    const all = Array.from({ length: 25_001 }, (_, index) => ({ _id: index }));
    expect((await items.insertMany(all)).insertedCount).toBe(25_001);
    expect(await items.countDocuments()).toBe(25_001);
  });

  it("refuses dates that the engine would get wrong, which it gets right as text", async () => {
    const items = database.collection<{ _id: number; at: Date }>("dates");
    await items.insertOne({ _id: 1, at: new Date("2026-12-31T12:34:56Z") });
    const of = (expression: object) => items.aggregate([{ $project: { _id: 0, to: expression } }]).toArray();
    await expect(of({ $dateTrunc: { date: "$at", unit: "day" } })).rejects.toMatchObject({ code: 115 });
    const hour = await of({ $dateTrunc: { date: "$at", unit: "hour" } });
    expect(hour).toEqual([{ to: new Date("2026-12-31T12:00:00Z") }]);
    const dates = Array.from({ length: 800 }, (_, day) => new Date(Date.UTC(2026, 0, 1 + day, 23, 59)));
    await items.deleteMany({});
    await items.insertMany(dates.map((at, _id) => ({ _id, at })));
    const days = await of({ $dateToString: { date: "$at", format: "%Y-%m-%d" } });
    expect(days.map(({ to }) => to as string).sort()).toEqual(dates.map((date) => date.toISOString().slice(0, 10)));
  });

  it("reports concurrent inserts of one key as duplicates, or as conflicts to repeat", {
    timeout: 120_000,
  }, async () => {
    const many = openMongodb(targetOf(machine), { user: "app_user", password: "a password" }, { maxPoolSize: 6 });
    const items = many.db("defaultdb").collection<{ k: number }>("keys");
    await items.createIndex({ k: 1 }, { unique: true });
    const codes: unknown[] = [];
    for (let k = 0; k < 6; k += 1) {
      const inserts = Array.from({ length: 6 }, () => items.insertOne({ k }));
      for (const result of await Promise.allSettled(inserts))
        if (result.status === "rejected") codes.push((result.reason as { code: unknown }).code);
    }
    expect(codes.filter((code) => code !== 11_000 && code !== 112)).toEqual([]);
    expect(await items.countDocuments()).toBe(6);
    await expect(items.insertOne({ k: 0 })).rejects.toMatchObject({
      message: "E11000 duplicate key error collection: defaultdb.keys index: k_1 dup key: { k: 0 }",
      keyPattern: { k: 1 },
      keyValue: { k: 0 },
    });
    const changed = items.findOneAndUpdate({ k: 1 }, { $set: { k: 0 } });
    await expect(changed).rejects.toMatchObject({ code: 11_000, keyPattern: { k: 1 }, keyValue: { k: 0 } });
    const merged = items.aggregate([{ $project: { _id: "new", k: "$k" } }, { $merge: { into: "keys" } }]).toArray();
    await expect(merged).rejects.toMatchObject({ code: 11_000, keyPattern: { k: 1 } });
    await items.updateMany({}, { $set: { same: 1 } });
    const index = items.createIndex({ same: 1 }, { unique: true });
    await expect(index).rejects.toMatchObject({ code: 11_000, keyPattern: { same: 1 } });
    await expect(items.createIndex({ same: 1 })).resolves.toBe("same_1");
    await many.close();
  });

  it("names the maximum of connections to those beyond it", { timeout: 60_000 }, async () => {
    const { ca, address, port, serverName } = targetOf(machine);
    const open = () => connectTls({ ca, host: address, port, servername: serverName });
    const sockets = Array.from({ length: 500 }, open);
    try {
      await Promise.all(sockets.map((socket) => once(socket, "secureConnect")));
      const refused = async () => {
        const excess = openMongodb(targetOf(machine), { user: "app_user", password: "a password" });
        const error: unknown = await excess.connect().then(
          () => undefined,
          (reason: unknown) => reason,
        );
        await excess.close();
        return String(error);
      };
      // Clients of the test itself, whose connections end, leave some places.
      sockets.push(...Array.from({ length: 20 }, open));
      await expect.poll(refused, { timeout: 20_000 }).toContain("maximum of 508 connections");
    } finally {
      for (const socket of sockets) socket.on("error", () => undefined).destroy();
    }
    await expect.poll(() => database.command({ ping: 1 }).catch(() => undefined)).toMatchObject({ ok: 1 });
  });

  it("names a document that an update makes too large", async () => {
    const items = database.collection<{ _id: number; text: string; more?: string }>("large");
    await items.insertOne({ _id: 1, text: "x".repeat(15_000_000) });
    const update = items.updateOne({ _id: 1 }, { $set: { more: "x".repeat(3_000_000) } });
    await expect(update).rejects.toMatchObject({ code: 10_334 });
  });

  it("names a full disk, and not another primary, while writes are blocked", async () => {
    const items = database.collection<{ _id: number }>("full");
    await items.insertOne({ _id: 1 });
    const setBlocked = async (writesBlocked: boolean) => {
      const instance = { ...machine.instance, writesBlocked };
      await machine.writeConfig(instance);
      await machine.driver.reload(instance, machine.signal);
    };
    const codeOf = () =>
      items.insertOne({ _id: 2 }).then(
        () => "inserted",
        (error: unknown) => (error as { code?: number }).code,
      );
    await setBlocked(true);
    await expect.poll(codeOf, { timeout: 10_000 }).toBe(14_031);
    await expect(items.drop()).rejects.toThrow("The disk of the service is full");
    expect(await items.countDocuments()).toBe(1);
    await setBlocked(false);
    await expect.poll(codeOf, { timeout: 10_000 }).toBe("inserted");
  });

  it("answers a command that it lacks, also one with document sequences", async () => {
    const bulk = client.bulkWrite([{ name: "insertOne", namespace: "defaultdb.bulk", document: { a: 1 } }]);
    await expect(bulk).rejects.toMatchObject({ cause: { code: 59 } });
  });
});

import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { clientListener, openMongodb, targetOf } from "@holdfast/testing/engines/mongodb-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EngineRefused } from "../engine-errors.ts";
import { databases } from "./databases.ts";
import { createMongodbDriver } from "./driver.ts";

const skip = await requireRecipes(import.meta.filename, "mongodb");

describe.skipIf(skip !== undefined)("databases of documents", () => {
  let machine: EngineMachine;
  let client: ReturnType<typeof openMongodb>;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    const user = { username: "app_user", role: "admin", verifier: scramVerifier("a password") };
    const settings = {
      users: [create(EngineUserSchema, user)],
      allowedCidrs: ["127.0.0.0/8"],
      listeners: [clientListener(port)],
    };
    machine = await createEngineMachine(async (deps) => createMongodbDriver(deps), "mongodb", "ferretdb-2", settings);
    await machine.bringUp();
    client = openMongodb(targetOf(machine), { user: "app_user", password: "a password" });
  });
  afterAll(async () => {
    await client?.close();
    await machine?.remove();
  });

  const createDatabase = (name: string, mark = "") =>
    databases.create(machine.instance, { name, owner: "app_user", mark }, machine.signal);
  const drop = (name: string) => databases.drop(machine.instance, name, machine.signal);
  const settled = (name: string, mark: string) => databases.settled(machine.instance, name, mark, machine.signal);
  const names = async () => (await databases.list(machine.instance, machine.signal)).map(({ name }) => name);
  const collectionsOf = async (name: string) =>
    (await client.db(name).listCollections().toArray()).map((collection) => collection.name);

  it("include the default one, with an empty collection", async () => {
    expect(await names()).toEqual(["defaultdb"]);
    expect(await collectionsOf("defaultdb")).toEqual(["default"]);
    await expect(drop("defaultdb")).rejects.toThrow(EngineRefused);
  });

  it("are created with a mark, once, and clients use them", async () => {
    expect(await createDatabase("orders", "mark 1")).toEqual({ created: true });
    expect(await createDatabase("orders", "mark 1")).toEqual({ created: true });
    expect(await createDatabase("orders", "mark 2")).toEqual({ created: false });
    expect(await createDatabase("orders")).toEqual({ created: false });
    expect(await settled("orders", "mark 1")).toEqual({ exists: true, marked: true });
    expect(await settled("orders", "mark 2")).toEqual({ exists: true, marked: false });
    await client
      .db("orders")
      .collection("items")
      .insertOne({ text: "x".repeat(100_000) });
    await client.db("orders").collection("default").insertOne({ a: 1 });
    const [, orders] = await databases.list(machine.instance, machine.signal);
    expect(orders).toMatchObject({ name: "orders", owner: "app_user", state: "ready" });
    expect(Number(orders?.sizeBytes)).toBeGreaterThan(8_192);
  });

  it("are dropped with their documents, also those that a client created", async () => {
    await client.db("by-client").collection("items").insertOne({ a: 1 });
    expect(await createDatabase("by-client", "mark 3")).toEqual({ created: false });
    expect(await settled("by-client", "mark 3")).toEqual({ exists: true, marked: false });
    for (const name of ["orders", "by-client"]) {
      expect(await drop(name)).toEqual({ existed: true });
      expect(await drop(name)).toEqual({ existed: false });
      expect(await settled(name, "mark 1")).toEqual({ exists: false, marked: false });
    }
    expect(await client.db("orders").collection("items").countDocuments()).toBe(0);
    expect(await names()).toEqual(["defaultdb"]);
  });

  it("are created once when several calls create them at the same time", async () => {
    const created = await Promise.all(["a", "b", "c", "d"].map((mark) => createDatabase("raced", mark)));
    expect(created.filter((each) => each.created)).toHaveLength(1);
  });

  it("have neither reserved names nor names that differ in letter case only", async () => {
    for (const name of ["admin", "config", "local", "holdfast_own"])
      await expect(createDatabase(name)).rejects.toThrow("is reserved for the platform");
    await client.db("Mixed").collection("items").insertOne({ a: 1 });
    await expect(createDatabase("mixed")).rejects.toThrow(EngineRefused);
  });

  it("that a client dropped remain dropped over a restart", async () => {
    await client.db("defaultdb").dropDatabase();
    await machine.stop();
    await machine.bringUp();
    expect(await names()).not.toContain("defaultdb");
    await client.db("defaultdb").collection("items").insertOne({ a: 1 });
    expect(await names()).toContain("defaultdb");
  });
});

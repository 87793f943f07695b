import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import {
  clientListener,
  openMongodb,
  openMongodbAt,
  succeedingCommands,
  targetOf,
} from "@holdfast/testing/engines/mongodb-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withSession } from "../postgresql/session.ts";
import { asPostgresql } from "./as-postgresql.ts";
import { createMongodbDriver } from "./driver.ts";
import { type Access, documentsSocket } from "./layout.ts";

const skip = await requireRecipes(import.meta.filename, "mongodb");

/** Commands with arguments by which they would change something. Other commands get a collection. */
const effective: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  aggregate: { aggregate: "items", pipeline: [{ $out: "copy" }], cursor: {} },
  collMod: { collMod: "items", validator: { a: 1 } },
  create: { create: "created" },
  createIndexes: { createIndexes: "items", indexes: [{ key: { a: 1 }, name: "a" }] },
  createUser: { createUser: "intruder", pwd: "a secret 1", roles: [{ role: "clusterAdmin", db: "admin" }] },
  delete: { delete: "items", deletes: [{ q: {}, limit: 0 }] },
  dropAllUsersFromDatabase: { dropAllUsersFromDatabase: 1 },
  dropDatabase: { dropDatabase: 1 },
  dropIndexes: { dropIndexes: "items", index: "*" },
  dropUser: { dropUser: "app_user" },
  findAndModify: { findAndModify: "items", query: {}, update: { $set: { a: 2 } } },
  insert: { insert: "items", documents: [{ _id: "new" }] },
  renameCollection: { renameCollection: "defaultdb.items", to: "defaultdb.renamed" },
  update: { update: "items", updates: [{ q: {}, u: { $set: { a: 2 } }, multi: true }] },
  updateUser: { updateUser: "reader", pwd: "a secret 1" },
};

describe.skipIf(skip !== undefined)("users of MongoDB's API", () => {
  let machine: EngineMachine;
  let names: string[];

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    const users = Object.entries({ app_user: "admin", reader: "readonly" }).map(([username, role]) =>
      create(EngineUserSchema, { username, role, verifier: scramVerifier("a password") }),
    );
    const settings = { users, allowedCidrs: ["127.0.0.0/8"], listeners: [clientListener(port)] };
    machine = await createEngineMachine(async (deps) => createMongodbDriver(deps), "mongodb", "ferretdb-2", settings);
    await machine.bringUp();
    const owner = through("app_user");
    await owner.db("defaultdb").collection("items").insertOne({ a: 1 });
    const { commands } = await owner.db("admin").command({ listCommands: 1 });
    // After a logout all others would be refused.
    names = Object.keys(commands as object).filter((name) => name !== "logout");
    await owner.close();
  });
  afterAll(() => machine?.remove());

  const through = (user: string) => openMongodb(targetOf(machine), { user, password: "a password" });
  /** Around the front end, which no client can do. */
  const directly = (user: string, access: Access) =>
    openMongodbAt(documentsSocket(machine.instance, access), { user, password: "a password" });

  /** All documents, collections, indexes and roles, as text. */
  function contents(): Promise<string> {
    const read = async (query: string) =>
      withSession(asPostgresql(machine.instance), machine.signal, (session) => session.rows(query), {
        database: "defaultdb",
      });
    const queries = [
      "SELECT * FROM documentdb_api_catalog.collections ORDER BY collection_id",
      "SELECT * FROM documentdb_api_catalog.collection_indexes ORDER BY index_id",
      "SELECT rolname, rolpassword, rolsuper, rolcreaterole FROM pg_authid ORDER BY rolname",
      "SELECT relname FROM pg_class WHERE relnamespace = 'documentdb_data'::regnamespace ORDER BY relname",
      "SELECT document::text FROM documentdb_data.documents_2",
    ];
    return Promise.all(queries.map(read)).then((all) => JSON.stringify(all));
  }

  const commandOf = (name: string) => lookUp(effective, name) ?? { [name]: "items" };

  const ofUsers = ["createUser", "dropAllUsersFromDatabase", "dropUser", "updateUser"];

  it("change nothing with the role readonly, by any command of the engine", async () => {
    expect(names.length).toBeGreaterThan(40);
    expect(Object.keys(effective).filter((name) => !names.includes(name))).toEqual([]);
    const before = await contents();
    const succeeded = await succeedingCommands(through("reader"), names, commandOf);
    expect(succeeded).toContain("count");
    expect(succeeded.filter((name) => name in effective)).toEqual([]);
    expect(await contents()).toBe(before);
  });

  it("change nothing in the process of readers, even around the front end", async () => {
    const before = await contents();
    const succeeded = await succeedingCommands(directly("reader", "readonly"), names, commandOf);
    expect(succeeded).toContain("count");
    expect(await contents()).toBe(before);
  });

  it("do not sign in to PostgreSQL itself", async () => {
    for (const user of ["app_user", "reader", "holdfast", "holdfast_documents"])
      await expect(connectPostgresql(machine, { user, password: "a password" })).rejects.toThrow(/pg_hba/);
  });

  it("neither create nor change users, through the front end or around it", async () => {
    const before = await contents();
    expect(await succeedingCommands(through("app_user"), ofUsers, commandOf)).toEqual([]);
    await succeedingCommands(directly("app_user", "readwrite"), ofUsers, commandOf);
    expect(await contents()).toBe(before);
  });
});

import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { clientListener, openMongodb, targetOf } from "@holdfast/testing/engines/mongodb-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Session, withSession } from "../postgresql/session.ts";
import { asPostgresql } from "./as-postgresql.ts";
import { createMongodbDriver } from "./driver.ts";

const skip = await requireRecipes(import.meta.filename, "mongodb");

describe.skipIf(skip !== undefined)("data of an older image", () => {
  let machine: EngineMachine;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    const user = { username: "app_user", role: "admin", verifier: scramVerifier("a password") };
    const settings = { users: [create(EngineUserSchema, user)], listeners: [clientListener(port)] };
    machine = await createEngineMachine(async (deps) => createMongodbDriver(deps), "mongodb", "ferretdb-2", settings);
    await machine.bringUp();
  });
  afterAll(() => machine?.remove());

  const inDocuments = <T>(work: (session: Session) => Promise<T>) =>
    withSession(asPostgresql(machine.instance), machine.signal, work, { database: "defaultdb" });
  const versions = () =>
    inDocuments((session) =>
      session.rows<{ extname: string; extversion: string }>(
        "SELECT extname, extversion FROM pg_extension WHERE extname LIKE 'documentdb%' ORDER BY extname",
      ),
    );
  async function countAfterInsert(): Promise<number> {
    const client = openMongodb(targetOf(machine), { user: "app_user", password: "a password" });
    const items = client.db("defaultdb").collection("items");
    await items.insertOne({ a: 1 });
    const count = await items.countDocuments({ a: 1 });
    await client.close();
    return count;
  }

  it("get the version of DocumentDB that the image has, with their documents", async () => {
    const newest = await versions();
    expect(newest).toHaveLength(2);
    const older = "0.117-0";
    await inDocuments(async (session) => {
      await session.rows(
        "SET search_path TO public; DROP EXTENSION documentdb CASCADE; DROP EXTENSION documentdb_core CASCADE",
      );
      for (const name of ["documentdb_core", "documentdb"])
        await session.rows(`CREATE EXTENSION ${name} VERSION '${older}'`);
      await session.rows("GRANT documentdb_admin_role TO holdfast_documents, holdfast_documents_reader");
    });
    expect((await versions()).map(({ extversion }) => extversion)).toEqual([older, older]);
    const before = await countAfterInsert();
    await machine.stop();
    await machine.bringUp();
    expect(await versions()).toEqual(newest);
    expect(await countAfterInsert()).toBe(before + 1);
  });
});

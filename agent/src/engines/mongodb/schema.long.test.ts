import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { clientListener, openMongodb, targetOf } from "@holdfast/testing/engines/mongodb-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { documentRoles } from "../postgresql/layout.ts";
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
  it("get the version of DocumentDB that the image has, with their documents", async () => {
    const newest = await versions();
    expect(newest).toHaveLength(2);
    const older = "0.117-0";
    await inDocuments((session) =>
      session.rows(
        `SET search_path TO public; DROP EXTENSION documentdb CASCADE; DROP EXTENSION documentdb_core CASCADE;
         CREATE EXTENSION documentdb_core VERSION '${older}'; CREATE EXTENSION documentdb VERSION '${older}'`,
      ),
    );
    expect((await versions()).map(({ extversion }) => extversion)).toEqual([older, older]);
    await inDocuments((session) =>
      session.rows(
        `SET ROLE ${documentRoles.writers}; SET search_path TO public;
         SELECT documentdb_api.insert_one('defaultdb', 'items', '{"_id": 1}'::documentdb_core.bson)`,
      ),
    );
    await machine.stop();
    await machine.bringUp();
    expect(await versions()).toEqual(newest);
    const client = openMongodb(targetOf(machine), { user: "app_user", password: "a password" });
    const items = client.db("defaultdb").collection<{ _id: number }>("items");
    await items.insertOne({ _id: 2 });
    expect(await items.find().sort({ _id: 1 }).toArray()).toEqual([{ _id: 1 }, { _id: 2 }]);
    await client.close();
    expect(machine.output()).not.toContain("Skipping background worker job");
    const jobs = await inDocuments((session) => session.rows<{ jobname: string }>("SELECT jobname FROM cron.job"));
    expect(jobs.some(({ jobname }) => jobname.startsWith("documentdb_index_build"))).toBe(true);
  });
});

import { create } from "@bufbuild/protobuf";
import { CreateEngineDatabaseSchema, EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createPostgresqlDriver } from "./driver.ts";

const roles = { app_user: "admin", owner: "readwrite", writer: "readwrite", reader: "readonly" } as const;

describe.skipIf(!hasEngine("postgresql", "17"))("a database with an owner", () => {
  let machine: EngineMachine;
  beforeAll(async () => {
    const users = Object.entries(roles).map(([username, role]) =>
      create(EngineUserSchema, { username, role, verifier: scramVerifier("secret") }),
    );
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", "17", { users });
    await machine.bringUp();
  }, 60_000);
  afterAll(() => machine?.remove());

  const createDatabase = (name: string, owner: string) =>
    machine.driver.databases?.create(
      machine.instance,
      create(CreateEngineDatabaseSchema, { name, owner, mark: "" }),
      machine.signal,
    );

  async function run(user: string, database: string, statement: string): Promise<string> {
    const client = await connectPostgresql(machine, { user, password: "secret", database });
    try {
      await client.query(statement);
      return "done";
    } catch (error) {
      return (error as { code?: string }).code ?? String(error);
    } finally {
      await client.end();
    }
  }

  it("lets users do in it what they may in the default database", async () => {
    await createDatabase("shop", "app_user");
    const statements = ["CREATE TABLE t (id int)", "CREATE SCHEMA s", "CREATE TEMPORARY TABLE t (id int)"];
    for (const user of ["writer", "reader"])
      for (const statement of statements)
        expect(`${user}: ${statement}: ${await run(user, "shop", statement)}`).toBe(
          `${user}: ${statement}: ${await run(user, "defaultdb", statement)}`,
        );
  });

  it("is the owner's to create in, and others have the privileges of their roles", async () => {
    await createDatabase("reports", "owner");
    expect(await run("owner", "reports", "CREATE TABLE t (id int); CREATE SCHEMA s; CREATE TABLE s.t (id int)")).toBe(
      "done",
    );
    expect(await run("writer", "reports", "INSERT INTO t VALUES (1); INSERT INTO s.t VALUES (1)")).toBe("done");
    expect(await run("reader", "reports", "SELECT * FROM t, s.t")).toBe("done");
    expect(await run("reader", "reports", "BEGIN READ WRITE; INSERT INTO t VALUES (1)")).toBe("42501");
    expect(await run("app_user", "reports", "DROP TABLE s.t")).toBe("done");
  });

  it("is not created for a user that does not exist", async () => {
    await expect(createDatabase("absent", "nobody")).rejects.toThrow("The user nobody does not exist.");
    await expect(createDatabase("absent", "holdfast")).rejects.toThrow("The user holdfast does not exist.");
  });
});

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import { platformSchemas, program } from "../layout.ts";

for (const version of ["17", "18"])
  describe.skipIf(!hasEngine("postgresql", version))(`a dump of PostgreSQL ${version} with queues`, () => {
    let database: QueueDatabase;
    beforeAll(async () => {
      database = await createQueueDatabase(version);
      await database.createQueue("mail");
      const owner = await database.connect();
      await owner.query("CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (7)");
      await owner.query(`SELECT mdb_queue.enqueue('mail', '{"n": 1}')`);
      await owner.end();
    });
    afterAll(() => database?.remove());

    /** Runs a program as a client of the engine's port, as a user with this role. */
    const asClient = (name: string, user: string, options: readonly string[], into = "defaultdb") => {
      const { instance, run, signal } = database.machine;
      const { address, port } = instance.spec;
      const to = `host=${address} port=${port} user=${user} dbname=${into} sslmode=require`;
      return run([program(instance, name), `--dbname=${to}`, ...options], { env: { PGPASSWORD: "secret" }, signal });
    };

    it("contains the messages, if the default user takes it", async () => {
      const dump = await asClient("pg_dump", "app_user", []);
      expect(dump).toContain("CREATE TABLE public.orders");
      expect(dump).toMatch(/COPY mdb_queue\.messages .*\n1\tmail\t{"n": 1}/);
      for (const table of ["queues", "tasks", "meta", "dead_messages"])
        expect(dump).toContain(`COPY mdb_queue.${table} `);
    });

    it("loads into another database, except the trigger that each database has", async () => {
      const file = join(database.machine.instance.paths.data, "dump");
      const without = platformSchemas.map((schema) => `--exclude-schema=${schema}`);
      await asClient("pg_dump", "app_user", ["--format=custom", `--file=${file}`, ...without]);
      const owner = await database.connect();
      await owner.query("CREATE DATABASE loaded");
      const loading = asClient("pg_restore", "app_user", ["--no-owner", "--no-privileges", file], "loaded");
      await expect(loading).rejects.toMatchObject({
        output: expect.stringMatching(/^[^]*create event trigger[^]*errors ignored on restore: 1\n$/),
      });
      const loaded = await database.connect("app_user", "loaded");
      expect((await loaded.query("SELECT id FROM orders")).rows).toEqual([{ id: 7 }]);
      const schemas = await loaded.query("SELECT FROM pg_namespace WHERE nspname = 'mdb_queue'");
      expect(schemas.rowCount).toBe(0);
      await Promise.all([loaded.end(), owner.end()]);
    });

    it("is refused to users without privileges on queues", async () => {
      await expect(asClient("pg_dump", "reader", [])).rejects.toThrow(/permission denied/);
    });
  });

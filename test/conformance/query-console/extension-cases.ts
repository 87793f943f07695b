import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ConsoleMachine } from "./console-machine.ts";
import { extensionAttacks, extensionStatements } from "./extensions.ts";
import { extensionSchema } from "./schemas.ts";

/** Tests of a database with extensions, and with objects of users that shadow theirs. */
export function testExtensions(consoleOf: () => ConsoleMachine): void {
  describe("in a database with extensions", () => {
    let client: Client;

    beforeAll(async () => {
      await consoleOf().owner.query("CREATE DATABASE extended");
      client = await consoleOf().connect("extended");
      await client.query(extensionSchema);
    });
    afterAll(() => client?.end());

    const inExtended = (sql: string) => consoleOf().execute(sql, { database: "extended" });

    test.each(extensionStatements)("%s answers %j", async (sql, first) => {
      expect((await consoleOf().resultOf(sql, { database: "extended" })).rows[0]).toEqual(first);
    });

    test(`refuses ${extensionAttacks.length} statements in which a user's object shadows an extension's`, async () => {
      const passed: string[] = [];
      for (const sql of extensionAttacks) if (!("refusal" in (await inExtended(sql)))) passed.push(sql);
      expect(passed).toEqual([]);
      const { rows } = await client.query(
        "SELECT (SELECT count(*) FROM harm_done) + is_called::int AS harm FROM harm_counted",
      );
      expect(rows).toEqual([{ harm: "0" }]);
    });

    test("looks up no name of an extension in a schema where users can create operators", async () => {
      await client.query(`CREATE FUNCTION harm_near(text, text) RETURNS float8 LANGUAGE sql AS 'SELECT harm()::float8';
        CREATE OPERATOR <-> (LEFTARG = text, RIGHTARG = text, FUNCTION = harm_near)`);
      const none = { refusal: { message: expect.stringMatching(/^operator does not exist/) } };
      expect(await inExtended("SELECT embedding <-> '[1,0,0]' FROM items")).toMatchObject(none);
      const mixed = {
        refusal: { message: expect.stringMatching(/^The operator public.<-> belongs neither/), position: 18 },
      };
      expect(await inExtended("SELECT embedding OPERATOR(public.<->) embedding FROM items")).toMatchObject(mixed);
      await client.query("DROP OPERATOR <-> (text, text)");
      expect(
        (await consoleOf().resultOf("SELECT embedding <-> '[1,0,0]' FROM items WHERE id = 1", { database: "extended" }))
          .rows,
      ).toEqual([[0]]);
    });
  });
}

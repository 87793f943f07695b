import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "pg";
import { type ConsoleMachine, noNames } from "./console-machine.ts";
import { besideStatements, harmlessObjects, type Route, routeFixture, routes } from "./user-code-routes.ts";

/**
 * Tests of a database with users' code that no statement names: statements that would run it are refused, and those
 * beside it are not. `choose` selects the statements of a route.
 */
export function testRoutes(consoleOf: () => ConsoleMachine, choose: (route: Route) => readonly string[]): void {
  describe("in a database with users' code that no statement names", () => {
    let client: Client;

    beforeAll(async () => {
      await consoleOf().owner.query("CREATE DATABASE coded");
      client = await consoleOf().connect("coded");
      await client.query(routeFixture);
      await client.query(harmlessObjects);
      for (const { setup } of routes) await client.query(setup);
    });
    afterAll(() => client?.end());

    /** Runs a statement without the agent's own check. */
    async function executeUnchecked(sql: string) {
      const verdict = await consoleOf().guard.check(sql);
      if ("refused" in verdict) throw new Error(verdict.refused);
      const limits = { rowsMax: 10, bytesMax: 10_000, timeoutMs: 5_000 };
      return consoleOf().run({ database: "coded", sql: verdict.sql, ...noNames, ...limits });
    }

    for (const route of routes)
      test.each(choose(route))(`${route.name}: %s`, async (sql) => {
        const ran = { refusal: { message: expect.stringMatching(/^code of users ran/) } };
        expect(await executeUnchecked(sql)).toMatchObject(ran);
        const refused = { refusal: { message: expect.stringMatching(route.why) } };
        expect(await consoleOf().execute(sql, { database: "coded" })).toMatchObject(refused);
      });

    test.each(besideStatements)("%s answers %j", async (sql, first) => {
      expect((await consoleOf().resultOf(sql, { database: "coded" })).rows[0]).toEqual(first);
    });
  });
}

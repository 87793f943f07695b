import { get } from "node:https";
import { describe, expect, it } from "vitest";
import { privateConnection, openPostgresql, queryOnce } from "@holdfast/testing/api/clients.ts";
import type { LogsJson, ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { PostgresqlUnderTest } from "./postgresql-under-test.ts";

/** The allow-list, the configuration and the log. */
export function settingAndLogCases(fixture: PostgresqlUnderTest): void {
  describe("the allow-list", () => {
    it("applies to open and new sessions, and admits clients again", async () => {
      const { connection, password } = fixture.main;
      const session = await openPostgresql(fixture.platform, connection, { password });
      const closed = new Promise((resolve) => session.once("end", resolve));
      expectStatus(await fixture.platform.rest.patch(fixture.path(), { allowed_cidrs: ["192.0.2.0/24"] }), 200);
      await closed;
      await expect(openPostgresql(fixture.platform, connection, { password })).rejects.toThrow("pg_hba");
      await expect(openPostgresql(fixture.platform, privateConnection(connection), { password })).rejects.toThrow(
        "pg_hba",
      );

      expectStatus(await fixture.platform.rest.patch(fixture.path(), { allowed_cidrs: ["127.0.0.0/8"] }), 200);
      await waitUntil("the service lets loopback in", async () => {
        await queryOnce(fixture.platform, connection, { password }, "SELECT 1");
        return true;
      });
    });

    it("is stored in canonical form, and each entry that is no network is named", async () => {
      const cidrs = ["127.0.0.1/8", "2001:DB8::/32", "127.0.0.0/8"];
      const { json } = await fixture.platform.rest.patch<{ allowed_cidrs: string[] }>(fixture.path(), {
        allowed_cidrs: cidrs,
      });
      expect(json.allowed_cidrs).toEqual(["127.0.0.0/8", "2001:db8::/32"]);
      const rejected = await fixture.platform.rest.patch<ProblemJson>(fixture.path(), {
        allowed_cidrs: ["127.0.0.0/8", "10.0.0.0/33", "x"],
      });
      expect(expectStatus(rejected, 400).json.errors.map(({ pointer }) => pointer)).toEqual([
        "/allowed_cidrs/1",
        "/allowed_cidrs/2",
      ]);
      expectStatus(await fixture.platform.rest.patch(fixture.path(), { allowed_cidrs: ["127.0.0.0/8"] }), 200);
    });
  });

  describe("logs", () => {
    it("come in pages by cursor, by level and since a time", async () => {
      const { connection, password } = fixture.main;
      await expect(queryOnce(fixture.platform, connection, { password }, "SELECT from_the_log_test")).rejects.toThrow(
        "does not exist",
      );
      const read = (query: string) => fixture.platform.rest.get<LogsJson>(fixture.path(`/logs?${query}`));
      const found = await waitUntil("the error is in the log", async () => {
        const lines: LogsJson["lines"][number][] = [];
        for (let cursor = ""; ; ) {
          const { json } = expectStatus(await read(`limit=50&level=error${cursor}`), 200);
          lines.push(...json.lines);
          if (!json.has_more) return lines.find(({ message }) => message.includes("from_the_log_test"));
          cursor = `&cursor=${encodeURIComponent(json.next_cursor)}`;
        }
      });
      expect(found).toMatchObject({ level: "error" });
      const later = await read(`since=${encodeURIComponent(new Date(Date.now() + 60_000).toISOString())}`);
      expect(expectStatus(later, 200).json).toMatchObject({ lines: [], has_more: false });
      expect((await read("cursor=junk")).status).toBe(400);
    });

    it("are followed as server-sent events", async () => {
      const lines = Promise.withResolvers<string>();
      const headers = { authorization: fixture.platform.owner, accept: "text/event-stream" };
      const follow = get(
        `${fixture.platform.rest.baseUrl}${fixture.path("/logs?follow=true")}`,
        { headers, ca: fixture.platform.ca },
        (response) => {
          let text = "";
          expect(response.headers["content-type"]).toMatch(/^text\/event-stream/);
          response.setEncoding("utf8").on("data", (chunk: string) => {
            text += chunk;
            if (text.includes("from_the_follower")) lines.resolve(text);
          });
        },
      );
      follow.once("error", lines.reject);
      const { connection, password } = fixture.main;
      await expect(queryOnce(fixture.platform, connection, { password }, "SELECT from_the_follower")).rejects.toThrow(
        "does not exist",
      );
      const text = await lines.promise;
      follow.destroy();
      expect(text).toMatch(/^id: ?\S+/m);
    });
  });

  describe("configuration", () => {
    interface ParameterJson {
      readonly value: string;
      readonly default: string;
      readonly status: string;
      readonly reason: string | null;
    }
    const change = (parameters: Record<string, unknown>) =>
      fixture.platform.rest.patch<{ parameters: Record<string, ParameterJson> } & ProblemJson>(
        fixture.path("/configuration"),
        {
          parameters,
        },
      );
    const show = async (name: string) => {
      const [row] = await queryOnce<Record<string, string>>(
        fixture.platform,
        fixture.main.connection,
        { password: fixture.main.password },
        `SHOW ${name}`,
      );
      return row?.[name];
    };

    it("is applied without a restart where the engine can", async () => {
      const { json } = expectStatus(await change({ work_mem: "12MB" }), 200);
      expect(json.parameters["work_mem"]).toMatchObject({ status: "applied" });
      expect(await show("work_mem")).toBe("12MB");
      const reset = expectStatus(await change({ work_mem: null }), 200).json.parameters["work_mem"];
      expect(reset?.value).toBe(reset?.default);
    });

    it("waits for a restart where the engine needs one", async () => {
      const before = await show("max_connections");
      const { json } = expectStatus(await change({ max_connections: "61" }), 200);
      expect(json.parameters["max_connections"]).toMatchObject({ value: "61", status: "pending_restart" });
      expect(await show("max_connections")).toBe(before);
      await fixture.services.verb(fixture.main.service.id, "restart");
      expect(await show("max_connections")).toBe("61");
      const after = await fixture.platform.rest.get<{ parameters: Record<string, ParameterJson> }>(
        fixture.path("/configuration"),
      );
      expect(after.json.parameters["max_connections"]).toMatchObject({ status: "applied" });
    });

    it("rolls back a value that the engine itself rejects, and continues with the one before", async () => {
      expectStatus(await change({ TimeZone: "Nowhere/City", work_mem: "13MB" }), 200);
      const { parameters } = await waitUntil("the time zone is rejected", async () => {
        const { json } = await fixture.platform.rest.get<{ parameters: Record<string, ParameterJson> }>(
          fixture.path("/configuration"),
        );
        return json.parameters["TimeZone"]?.status === "rejected" ? json : undefined;
      });
      expect(parameters["TimeZone"]?.reason).toContain("TimeZone = Nowhere/City");
      expect(parameters["work_mem"]).toMatchObject({ value: "13MB", status: "applied" });
      expect([await show("TimeZone"), await show("work_mem")]).toEqual(["UTC", "13MB"]);
      await fixture.services.settled(fixture.main.service.id, "Running");
      const reset = expectStatus(await change({ TimeZone: null, work_mem: null }), 200).json.parameters["TimeZone"];
      expect(reset).toMatchObject({ value: "UTC", status: "applied", reason: null });
    });

    it("rejects all when one is invalid, and names each", async () => {
      const before = (await fixture.platform.rest.get(fixture.path("/configuration"))).json;
      const response = expectStatus(await change({ work_mem: "8MB", max_connections: "many", no_such: "1" }), 400);
      expect(response.json.errors.map(({ pointer }) => pointer).sort()).toEqual([
        "/parameters/max_connections",
        "/parameters/no_such",
      ]);
      expect((await fixture.platform.rest.get(fixture.path("/configuration"))).json).toEqual(before);
    });
  });
}

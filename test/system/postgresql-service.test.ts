import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import type { PageJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { connectionCases } from "./postgresql/connections.ts";
import { createPostgresqlUnderTest } from "./postgresql/postgresql-under-test.ts";
import { settingAndLogCases } from "./postgresql/settings-and-logs.ts";
import { userAndDatabaseCases } from "./postgresql/users-and-databases.ts";

describe("a managed PostgreSQL", () => {
  const fixture = createPostgresqlUnderTest();
  beforeAll(fixture.start);
  afterAll(fixture.remove);

  describe("its record", () => {
    it("shows its spec and its status", () => {
      expect(fixture.main.service).toMatchObject({
        name: "main",
        status: "Running",
        database_type: "postgresql",
        version: "17",
        plan_name: "tier-1",
        storage_size_gb: 1,
        allowed_cidrs: ["127.0.0.0/8"],
        tags: { team: "data" },
        deletion_protection: false,
        ttl_hours: null,
        expires_at: null,
        operation: null,
        error: null,
        port: 5432,
        health: { status: "healthy" },
      });
    });

    it("has a running node, also in a list", async () => {
      const { json } = expectStatus(
        await fixture.platform.rest.get<PageJson<"nodes", object>>(fixture.path("/nodes")),
        200,
      );
      expect(json.nodes).toMatchObject([{ role: "primary", status: "Running" }]);
      expect(json.next_cursor).toBeNull();
    });

    it("has an ended operation for its creation", async () => {
      const [create] = await fixture.services.operations(fixture.main.service.id);
      expect(create).toMatchObject({ type: "create", status: "completed", progress_pct: 100, error: null });
      const { json } = await fixture.platform.rest.get(`/operations/${create?.id}`);
      expect(json).toEqual(create);
    });
  });

  connectionCases(fixture);
  userAndDatabaseCases(fixture);
  settingAndLogCases(fixture);

  it("retains its data over a stop and start, and its passwords can be revealed while it is stopped", async () => {
    const { connection, password, service } = fixture.main;
    await queryOnce(fixture.platform, connection, { password }, "CREATE TABLE kept AS SELECT 42 AS answer");
    await fixture.services.verb(service.id, "stop");
    expect(await fixture.passwordOf("app_user")).toBe(password);
    expect((await fixture.platform.rest.get(fixture.path("/database-users"))).status).toBe(409);
    expect((await fixture.platform.rest.get(fixture.path("/databases"))).status).toBe(409);
    const stored = await fixture.platform.rest.patch<{ parameters: Record<string, { status: string }> }>(
      fixture.path("/configuration"),
      { parameters: { max_connections: "71" } },
    );
    expect(expectStatus(stored, 200).json.parameters["max_connections"]).toMatchObject({ status: "pending_restart" });
    await fixture.services.verb(service.id, "start");
    const rows = await queryOnce(
      fixture.platform,
      connection,
      { password },
      "SELECT answer, current_setting('max_connections') AS max FROM kept",
    );
    expect(rows).toEqual([{ answer: 42, max: "71" }]);
  });

  it("leaves no name behind when it is deleted", async () => {
    const { service, connection } = fixture.main;
    await fixture.services.delete(service.id);
    expect(await resolveName(fixture.platform.admin.dns_server, connection.host)).toEqual([]);
    expect(fixture.platform.processes().machines.map(({ id }) => id)).not.toContain(service.nodes[0]?.id);
  });
});

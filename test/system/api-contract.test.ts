import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createOrganizations } from "@holdfast/testing/platform/organizations.ts";
import type { PageJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { createApiUnderTest, validService as valid } from "./api/api-under-test.ts";
import { conditionCases } from "./api/conditional-requests.ts";
import { statusCases } from "./api/statuses.ts";
import { inputCases } from "./api/request-validation.ts";

// The REST client itself checks the headers, the problem document and the full shape of every response.
describe("the API's contract", () => {
  const fixture = createApiUnderTest();
  beforeAll(fixture.start);
  afterAll(fixture.remove);

  inputCases(fixture);
  statusCases(fixture);
  conditionCases(fixture);

  describe("objects of another organization", () => {
    it("do not exist", async () => {
      const body = { body: { name: "new" } };
      const requests: [string, string, object?][] = [
        ["GET", fixture.path()],
        ["PATCH", fixture.path(), body],
        ["DELETE", fixture.path()],
        ["POST", fixture.path("/stop")],
        ["GET", fixture.path("/connection")],
        ["GET", fixture.path("/database-users")],
        ["POST", fixture.path("/database-users/app_user/reveal-password")],
        ["GET", `/operations/${(await fixture.services.operations(fixture.service.id))[0]?.id}`],
      ];
      for (const [verb, at, options] of requests) {
        expect([verb, at, (await fixture.outsider.call(verb, at, options)).status]).toEqual([verb, at, 404]);
      }
      expect((await fixture.outsider.get<PageJson<"services", object>>("/managed-services")).json.services).toEqual([]);
    });

    it("may have equal names", async () => {
      const body = { ...valid, name: "main" };
      const response = await fixture.outsider.post<ServiceJson>("/managed-services", body);
      expect(expectStatus(response, 202).json.hostname).not.toBe(fixture.service.hostname);
      expectStatus(await fixture.outsider.delete(`/managed-services/${response.json.id}`), 202);
      await createServices(fixture.platform, fixture.outsider).deleted(response.json.id);
    });
  });

  describe("lists", () => {
    const names = ["list-a", "list-b", "list-c", "list-d", "list-e"];
    beforeAll(async () => {
      // Created but never awaited: a list contains services in all states.
      for (const name of names) await fixture.services.create(name, { tags: { list: "yes" } });
    });
    afterAll(async () => {
      const { json } = await fixture.platform.rest.get<PageJson<"services", ServiceJson>>(
        "/managed-services?tag=list:yes",
      );
      for (const { id } of json.services) await fixture.platform.rest.delete(`/managed-services/${id}`);
      for (const { id } of json.services) await fixture.services.deleted(id);
    });

    it("come in pages that together contain all, oldest first", async () => {
      const listed: string[] = [];
      for (let cursor = ""; ; ) {
        const at = `/managed-services?limit=2&tag=list:yes${cursor}`;
        const { json } = expectStatus(await fixture.platform.rest.get<PageJson<"services", ServiceJson>>(at), 200);
        expect(json.services.length).toBeLessThanOrEqual(2);
        listed.push(...json.services.map(({ name }) => name));
        if (json.next_cursor === null) break;
        cursor = `&cursor=${encodeURIComponent(json.next_cursor)}`;
      }
      expect(listed).toEqual(names);
    });

    it("reject a cursor of another filter, another list and another organization", async () => {
      const { json } = await fixture.platform.rest.get<PageJson<"services", ServiceJson>>("/managed-services?limit=1");
      const cursor = `cursor=${encodeURIComponent(json.next_cursor ?? "")}`;
      expectStatus(await fixture.platform.rest.get(`/managed-services?limit=1&${cursor}`), 200);
      expectStatus(await fixture.platform.rest.get(`/managed-services?tag=list:yes&${cursor}`), 400);
      expectStatus(await fixture.platform.rest.get(`${fixture.path("/operations")}?${cursor}`), 400);
      expectStatus(await fixture.outsider.get(`/managed-services?${cursor}`), 400);
    });

    it("filter by name, status, engine and tag", async () => {
      const list = async (query: string) =>
        (
          await fixture.platform.rest.get<PageJson<"services", ServiceJson>>(`/managed-services?${query}`)
        ).json.services.map(({ name }) => name);
      expect(await list("name=list-c")).toEqual(["list-c"]);
      expect(await list("tag=list:yes")).toEqual(names);
      expect(await list("tag=list:no")).toEqual([]);
      expect(await list("status=Running&name=main")).toEqual(["main"]);
      expect(await list("database_type=valkey")).toEqual([]);
    });
  });

  describe("the catalog", () => {
    it("lists engines, plans, tiers, zones, limits and prices", async () => {
      const { json } = await fixture.platform.rest.get<{
        engines: {
          database_type: string;
          default_version: string;
          parameters: { name: string; type: string }[];
          backups: object | null;
        }[];
        plans: { plan_name: string; vcpu: number; memory_gb: number; monthly_cost: number }[];
        storage_tiers: { storage_tier: string }[];
        zones: object[];
        limits: Record<string, number>;
        default_allowed_cidrs: string[];
        currency: string;
      }>("/catalog");
      expect(json.engines.map((engine) => engine.database_type)).toEqual([
        "postgresql",
        "mysql",
        "valkey",
        "tsql",
        "kafka",
        "mongodb",
        "opensearch",
      ]);
      expect(json.engines[0]?.default_version).toBe("17");
      expect(json.engines.map(({ backups }) => backups)).toEqual([
        { kind: "full", restore_points: "any_second", fork: true, increments: true },
        { kind: "snapshot", restore_points: "any_second", fork: true, increments: false },
        { kind: "snapshot", restore_points: "snapshots", fork: true, increments: false },
        { kind: "full", restore_points: "any_second", fork: true, increments: true },
        { kind: "snapshot", restore_points: "snapshots", fork: true, increments: false },
        { kind: "full", restore_points: "any_second", fork: true, increments: true },
        { kind: "snapshot", restore_points: "snapshots", fork: false, increments: false },
      ]);
      expect(json.engines[0]?.parameters).toContainEqual(
        expect.objectContaining({ name: "max_connections", type: "integer" }),
      );
      expect(json.storage_tiers.map((tier) => tier.storage_tier).sort()).toEqual(["maxiops", "standard"]);
      expect(json.limits).toMatchObject({ ttl_hours_min: 1, ttl_hours_max: 720, allowed_cidrs_max: 256, tags_max: 50 });
      expect(json).toMatchObject({ currency: "EUR", default_allowed_cidrs: ["127.0.0.0/8"] });
      expect(json.zones.length).toBeGreaterThan(0);
    });
  });

  describe("a quota", () => {
    it("rejects a service over the quota, with the figures", async () => {
      const organizations = createOrganizations(fixture.platform);
      const key = await organizations.createKey(await organizations.create("small", 1));
      organizations.close();
      const small = fixture.platform.rest.as(key.authorization);
      const first = await small.post<ServiceJson>("/managed-services", valid);
      expectStatus(first, 202);
      const second = await small.post<ProblemJson>("/managed-services", { ...valid, name: "second" });
      expect(expectStatus(second, 409).json).toMatchObject({
        code: "quota_exceeded",
        quota: "services",
        used: 1,
        // oxlint-disable-next-line holdfast/names -- a member of the API
        asked: 1,
        limit: 1,
      });
      expectStatus(await small.delete(`/managed-services/${first.json.id}`), 202);
      await createServices(fixture.platform, small).deleted(first.json.id);
      const third = await small.post<ServiceJson>("/managed-services", { ...valid, name: "second" });
      expectStatus(third, 202);
      expectStatus(await small.delete(`/managed-services/${third.json.id}`), 202);
    });
  });
});

import { OrganizationService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { describe, expect, it } from "vitest";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { grpcAs } from "@holdfast/testing/platform/organizations.ts";
import { basic } from "@holdfast/testing/api/rest.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AccessUnderTest, type Created, status } from "./access-under-test.ts";

/** Organizations and their quotas. */
export function organizationCases(fixture: AccessUnderTest): void {
  describe("organizations", () => {
    it("a user of two organizations names one, and an organization without services can be deleted", async () => {
      const created = await fixture.owner.post<Created>("/organizations", { name: "second" });
      expect(created.status).toBe(201);
      const { id } = created.json;
      expect((await fixture.owner.get("/managed-services")).json).toMatchObject({
        status: 400,
        code: "organization_required",
      });
      expect((await fixture.owner.get<{ organizations: unknown[] }>("/organizations")).json.organizations).toHaveLength(
        2,
      );
      expect((await fixture.of(fixture.owner, id, "GET", "/managed-services")).json).toEqual({
        services: [],
        next_cursor: null,
      });
      expect((await fixture.of(fixture.owner, id, "GET", `/organizations/${fixture.organizationId}`)).status).toBe(404);
      // A path that names the organization needs no header, with any verb; another user's organization does not
      // exist.
      for (const each of [id, fixture.organizationId]) {
        expect((await fixture.owner.get(`/organizations/${each}`)).json).toMatchObject({ id: each });
        expect(await status(fixture.owner.get(`/organizations/${each}/members`))).toBe(200);
      }
      expect((await fixture.owner.patch(`/organizations/${id}`, { name: "the second" })).json).toMatchObject({ id });
      expect((await fixture.owner.get(`/organizations/${fixture.platform.admin.api_key_id}`)).json).toMatchObject({
        status: 404,
        code: "object_not_found",
      });
      const key = await fixture.of(fixture.owner, id, "POST", "/api-keys", { name: "k", scopes: ["services:read"] });
      const keyed = fixture.platform.rest.as(basic(key.json.id, key.json.secret));
      expect(await status(keyed.get("/managed-services"))).toBe(200);
      const webhook = await fixture.of(fixture.owner, id, "POST", "/webhooks", { url: "https://1.1.1.1/" });
      expect((await fixture.owner.delete(`/organizations/${id}`)).status).toBe(204);
      expect(await status(keyed.get("/managed-services"))).toBe(401);
      await waitUntil("nothing of it remains", async () => {
        const keys = [...(await dumpEtcd(fixture.platform.directory)).keys()].filter(
          (name) => !name.includes("/outbox/"),
        );
        return keys.every((name) => [id, key.json.id, webhook.json.id].every((deletedId) => !name.includes(deletedId)));
      });
    });

    it("an operator sets an organization's quotas, whose usage it then sees", async () => {
      const channel = grpcAs(fixture.platform, fixture.platform.operator);
      const rpcs = channel.of(OrganizationService);
      try {
        const small = (await rpcs.createOrganization({ name: "small", quota: { storageGb: 2 } })).id;
        const { apiKey, secret } = await rpcs.createApiKey({ organizationId: small, name: "k" });
        const rest = fixture.platform.rest.as(basic(apiKey?.id ?? "", secret));
        const set = (limits: Partial<Record<"webhooks" | "apiKeys" | "members", number>>, paths: string[]) =>
          rpcs.updateQuota({ organizationId: small, ...limits, updateMask: { paths } });
        const service = { name: "big", database_type: "postgresql", plan_name: "tier-1", storage_size_gb: 3 };
        // Each node of the service counts with the requested storage.
        for (const body of [service, { ...service, storage_size_gb: 1, node_count: 3 }])
          expect((await rest.post("/managed-services", body)).json).toMatchObject({
            status: 409,
            code: "quota_exceeded",
            quota: "storage_gb",
            used: 0,
            // oxlint-disable-next-line holdfast/names -- a member of the API
            asked: 3,
            limit: 2,
          });
        await set({ webhooks: 1, apiKeys: 1, members: 0 }, ["webhooks", "api_keys", "members"]);
        expect(await status(rest.post("/webhooks", { url: "https://1.1.1.1/" }))).toBe(201);
        // oxlint-disable-next-line holdfast/names -- a member of the API
        const figures = { used: 1, asked: 1, limit: 1 };
        expect((await rest.post("/webhooks", { url: "https://1.1.1.1/" })).json).toMatchObject({
          status: 409,
          code: "webhook_limit_reached",
          quota: "webhooks",
          ...figures,
        });
        expect((await rest.post("/api-keys", { name: "more", scopes: ["org:read"] })).json).toMatchObject({
          status: 409,
          code: "quota_exceeded",
          quota: "api_keys",
          ...figures,
        });
        expect((await rest.get(`/organizations/${small}`)).json).toMatchObject({
          quota: { services: 100, storage_gb: 2, webhooks: 1, api_keys: 1, members: 0, tokens: 1_000 },
          usage: { services: 0, storage_gb: 0, webhooks: 1, api_keys: 1, members: 0, tokens: 0 },
        });
        const removed = await set({}, ["webhooks"]);
        expect(removed).toMatchObject({ quota: { webhooks: 20, apiKeys: 1 }, usage: { webhooks: 1 } });
        expect(await status(rest.post("/webhooks", { url: "https://1.1.1.1/" }))).toBe(201);
      } finally {
        channel.close();
      }
    });

    it("two concurrent requests on any replicas never exceed a quota", async () => {
      const created = await fixture.owner.post<Created>("/organizations", { name: "crowd" });
      const { id } = created.json;
      const responses = await Promise.all(
        Array.from({ length: 24 }, () =>
          fixture.of(fixture.owner, id, "POST", "/webhooks", { url: "https://1.1.1.1/" }),
        ),
      );
      const refused = responses.filter((response) => response.json["code"] === "webhook_limit_reached");
      expect(refused.length).toBeGreaterThan(0);
      const listed = await fixture.of(fixture.owner, id, "GET", "/webhooks?limit=200");
      expect(listed.json["webhooks"]).toHaveLength(20);
      expect(await status(fixture.owner.delete(`/organizations/${id}`))).toBe(204);
    });
  });
}

import { OperatorService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { describe, expect, it } from "vitest";
import { grpcAs } from "@holdfast/testing/platform/organizations.ts";
import { basic, type Rest } from "@holdfast/testing/api/rest.ts";
import { startSecondController } from "@holdfast/testing/platform/second-controller.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AccessUnderTest, type Created, status } from "./access-under-test.ts";

/** API keys, tokens and the credentials of operators: what they grant, and how they end. */
export function credentialCases(fixture: AccessUnderTest): void {
  describe("credentials", () => {
    it("operators create, rotate and delete operators' credentials, and one of them always remains", async () => {
      const first = grpcAs(fixture.platform, fixture.platform.operator);
      const operators = first.of(OperatorService);
      try {
        await expect(operators.revokeOperator({ username: "admin" })).rejects.toThrow(/only operator/);
        await expect(operators.createOperator({ username: "anna" })).rejects.toThrow(/in use/);
        const created = await operators.createOperator({ username: "olga" });
        const asOlga = async (password: string) => {
          const channel = grpcAs(fixture.platform, basic("olga", password));
          try {
            return (await channel.of(OperatorService).listOperators({})).operators.map(({ username }) => username);
          } finally {
            channel.close();
          }
        };
        expect(await asOlga(created.password)).toEqual(["admin", "olga"]);
        expect((await fixture.platform.rest.as(basic("olga", created.password)).get("/managed-services")).status).toBe(
          403,
        );
        const turned = await operators.rotateOperator({ username: "olga" });
        await expect(asOlga(created.password)).rejects.toThrow("UNAUTHENTICATED");
        expect(await asOlga(turned.password)).toHaveLength(2);
        const { setupToken } = await operators.resetUser({ userId: "olga" });
        await expect(asOlga(turned.password)).rejects.toThrow("UNAUTHENTICATED");
        expect(setupToken).toMatch(/^hfu_/);
        await operators.revokeOperator({ username: "olga" });
        await expect(operators.rotateOperator({ username: "olga" })).rejects.toThrow(/no operator/);
      } finally {
        first.close();
      }
    });

    it("a key grants its creator's scopes, shows its last use, rotates with an overlap and is revoked", async () => {
      const created = await fixture.platform.rest.post<Created>("/api-keys", {
        name: "maker",
        scopes: ["services:read", "keys:*"],
      });
      expect(created.status).toBe(201);
      const maker = fixture.platform.rest.as(basic(created.json.id, created.json.secret));
      expect((await maker.post("/api-keys", { name: "more", scopes: ["services:write"] })).json).toMatchObject({
        status: 403,
        scope: "services:write",
      });
      expect(await status(maker.post(`/api-keys/${fixture.platform.admin.api_key_id}/rotate`, {}))).toBe(403);
      const unknown = await maker.post("/api-keys", { name: "x", scopes: ["platform:read", "services:fly"] });
      expect(unknown.json).toMatchObject({ errors: [{ field: "scopes[0]" }, { field: "scopes[1]" }] });
      const list = await maker.get<{ api_keys: { id: string; last_used_from: string }[] }>("/api-keys?limit=200");
      expect(list.json.api_keys.find(({ id }) => id === created.json.id)?.last_used_from).toBe("127.0.0.1");
      expect(list.text).not.toContain(created.json.secret);
      const turned = await fixture.platform.rest.post<Created>(`/api-keys/${created.json.id}/rotate`, {
        overlap_hours: 1,
      });
      expect(turned.status).toBe(200);
      expect(await status(maker.get("/me"))).toBe(200);
      const repeated = await fixture.platform.rest.post<Created>(`/api-keys/${created.json.id}/rotate`, {});
      expect(await status(maker.get("/me"))).toBe(401);
      const current = fixture.platform.rest.as(basic(repeated.json.id, repeated.json.secret));
      expect(await status(current.get("/me"))).toBe(200);
      expect(await status(fixture.platform.rest.delete(`/api-keys/${created.json.id}`))).toBe(204);
      expect(await status(current.get("/me"))).toBe(401);
    });

    it("the first key and token of the installation name it as their creator, and show their last use", async () => {
      const { api_key_id: key, api_key_secret: secret, token } = fixture.platform.admin;
      const first = { created_by: "installation", last_used_from: "127.0.0.1" };
      const byKey = await fixture.platform.rest
        .as(basic(key, secret))
        .get<{ api_keys: { id: string }[] }>("/api-keys?limit=200");
      expect(byKey.json.api_keys.find(({ id }) => id === key)).toMatchObject(first);
      const byToken = await fixture.platform.rest
        .as(`Bearer ${token}`)
        .get<{ tokens: { created_by: string }[] }>("/tokens?limit=200");
      expect(byToken.json.tokens.filter(({ created_by: by }) => by === "installation")).toEqual([
        expect.objectContaining(first),
      ]);
    });

    it("a token limited to one service shows that one and creates nothing", async () => {
      const services = createServices(fixture.platform);
      const [allowed, forbidden] = [await services.create("mine"), await services.create("other")];
      const resources = [{ kind: "managed-service", id: allowed.id }];
      const tokenBody = { scopes: ["services:read", "services:write"], ttl_seconds: 60, resources };
      const created = await fixture.platform.rest.post<Created>("/tokens", tokenBody);
      expect(created.status).toBe(201);
      const limited = fixture.platform.rest.as(`Bearer ${created.json.token}`);
      const list = await limited.get<{ services: { id: string }[] }>("/managed-services");
      expect(list.json.services.map(({ id }) => id)).toEqual([allowed.id]);
      expect(await status(limited.get(`/managed-services/${forbidden.id}`))).toBe(404);
      const body = { name: "new", database_type: "postgresql", plan_name: "tier-1", storage_size_gb: 1 };
      expect(await status(limited.post("/managed-services", body))).toBe(403);
      const visible = await limited.get<{ events: { service_id?: string; object_id?: string }[] }>("/events?limit=200");
      expect(visible.status).toBe(200);
      expect(visible.text).not.toContain(forbidden.id);
      expect(await status(limited.get(`/managed-services/${forbidden.id}/events`))).toBe(404);
      expect(await status(fixture.platform.rest.delete(`/organizations/${fixture.organizationId}`))).toBe(409);
      expect(await status(fixture.platform.rest.delete(`/tokens/${created.json.id}`))).toBe(204);
      expect(await status(limited.get("/managed-services"))).toBe(401);
    });

    it("users create and revoke their tokens, and tokens expire; tokens of others need keys:write", async () => {
      const vera = await fixture.newUser("vera", "a third password", "viewer");
      const tokenBody = { scopes: ["services:read", "keys:read"], ttl_seconds: 60 };
      const [first, second] = [
        await vera.post<Created>("/tokens", tokenBody),
        await vera.post<Created>("/tokens", tokenBody),
      ];
      expect([first.status, second.status]).toEqual([201, 201]);
      expect(await status(vera.post("/tokens", { ...tokenBody, scopes: ["services:write"] }))).toBe(403);
      const session = fixture.platform.rest.as(`Bearer ${first.json.token}`);
      expect((await session.post("/tokens", tokenBody)).json).toMatchObject({ status: 403, scope: "keys:write" });
      const foreign = await fixture.platform.rest.post<Created>("/tokens", tokenBody);
      for (const caller of [vera, session]) {
        const refused = await caller.delete(`/tokens/${foreign.json.id}`);
        expect(refused.json).toMatchObject({ status: 403, scope: "keys:write" });
      }
      expect(await status(session.delete(`/tokens/${second.json.id}`))).toBe(403);
      expect(await status(vera.delete(`/tokens/${second.json.id}`))).toBe(204);
      expect(await status(session.delete(`/tokens/${first.json.id}`))).toBe(204);
      expect(await status(session.get("/me"))).toBe(401);
    });

    it("a credential revoked on one controller is rejected on another once that has seen it", async () => {
      const second = await startSecondController(fixture.platform);
      try {
        const scopes = ["services:read", "keys:read", "keys:write"];
        const key = await fixture.platform.rest.post<Created>("/api-keys", { name: "k", scopes });
        const ofKey = (on: Rest) => on.as(basic(key.json.id, key.json.secret));
        const token = await ofKey(fixture.platform.rest).post<Created>("/tokens", { scopes, ttl_seconds: 600 });
        expect([key.status, token.status]).toEqual([201, 201]);
        const revoked = [ofKey(second.rest), second.rest.as(`Bearer ${token.json.token}`)];
        // Used there, so that each controller has it in its cache of valid credentials.
        for (const rest of revoked)
          await waitUntil("it works on the second one", async () => (await rest.get("/catalog")).status === 200);
        const { headers } = await fixture.platform.rest.delete(`/api-keys/${key.json.id}`);
        const revision = String(headers["holdfast-revision"]);
        // This read waits for the revision, as any reader may request; 503 means that it did not arrive within a
        // second.
        await waitUntil("the second one has seen it", async () => {
          for (const rest of revoked) await rest.get("/catalog");
          return (await second.rest.get("/catalog", { headers: { "holdfast-revision": revision } })).status === 200;
        });
        for (const rest of revoked) expect(await status(rest.get("/catalog"))).toBe(401);
      } finally {
        await second.stop();
      }
    });
  });
}

import { describe, expect, it } from "vitest";
import { OrganizationService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { basic } from "@holdfast/testing/api/rest.ts";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AccessUnderTest, type Created, type Entry, status } from "./access-under-test.ts";

/** Users, their roles in an organization and their passwords. */
export function userCases(fixture: AccessUnderTest): void {
  describe("people", () => {
    it("a new user sets a password once, gets a role, and has its scopes", async () => {
      const anna = await fixture.newUser("anna", "correct horse battery", "developer");
      expect((await anna.get("/me")).json).toMatchObject({
        kind: "user",
        role: "developer",
        organization_id: fixture.organizationId,
      });
      expect(await status(anna.get("/managed-services"))).toBe(200);
      expect((await anna.post("/api-keys", { name: "k", scopes: ["services:read"] })).json).toMatchObject({
        code: "scope_missing",
        scope: "keys:write",
      });
      const me = `/organizations/${fixture.organizationId}/members/anna`;
      expect(await status(anna.patch(me, { role: "owner" }))).toBe(403);
      expect(await status(fixture.of(fixture.owner, fixture.organizationId, "PATCH", me, { role: "admin" }))).toBe(200);
      expect(await status(anna.patch(me, { role: "owner" }))).toBe(403);
      expect(
        await status(anna.patch(`/organizations/${fixture.organizationId}/members/admin`, { role: "viewer" })),
      ).toBe(403);
      expect(await status(anna.delete(`/organizations/${fixture.organizationId}`))).toBe(403);
    });

    it("the last owner stays", async () => {
      const path = `/organizations/${fixture.organizationId}/members/admin`;
      expect((await fixture.of(fixture.owner, fixture.organizationId, "DELETE", path)).json).toMatchObject({
        status: 409,
        code: "last_owner",
      });
      expect((await fixture.of(fixture.owner, fixture.organizationId, "PATCH", path, { role: "viewer" })).status).toBe(
        409,
      );
    });

    it("a password change requires the old one, which is invalid afterwards", async () => {
      const ben = await fixture.newUser("ben", "a first password", "viewer");
      expect(await status(ben.get("/me"))).toBe(200);
      const { json: token } = await ben.post<Created>("/tokens", { scopes: ["services:read"], ttl_seconds: 3_600 });
      const holder = fixture.platform.rest.as(`Bearer ${token.token}`);
      expect(await status(holder.get("/managed-services"))).toBe(200);
      const wrong = { current_password: "not the password", new_password: "a second password" };
      expect(await status(ben.post("/users/me/password", wrong))).toBe(400);
      const passwords = { current_password: "a first password", new_password: "a second password" };
      expect(await status(ben.post("/users/me/password", passwords))).toBe(204);
      expect(await status(ben.get("/me"))).toBe(401);
      // Another holder of the old password may have created tokens.
      expect(await status(holder.get("/managed-services"))).toBe(401);
      const renewed = fixture.platform.rest.as(basic("ben", "a second password"));
      const created = await renewed.post<Created>("/tokens", { scopes: ["services:read"], ttl_seconds: 3_600 });
      expect(await status(fixture.platform.rest.as(`Bearer ${created.json.token}`).get("/managed-services"))).toBe(200);
    });

    it("a lost password is reset with a token that works once, by those who may", async () => {
      const cora = await fixture.newUser("cora", "a first password", "viewer");
      const path = "/users/cora/reset";
      expect(await status(cora.post(path))).toBe(403);
      const { json: token } = await cora.post<Created>("/tokens", { scopes: ["services:read"], ttl_seconds: 3_600 });
      const holder = fixture.platform.rest.as(`Bearer ${token.token}`);
      expect(await status(holder.get("/managed-services"))).toBe(200);
      const lost = await fixture.of(fixture.owner, fixture.organizationId, "POST", path);
      expect(lost.json).toMatchObject({ id: "cora", setup_token: expect.stringMatching(/^hfu_/) });
      expect(await status(cora.get("/me"))).toBe(401);
      expect(await status(holder.get("/managed-services"))).toBe(401);
      const repeated = await fixture.of(fixture.owner, fixture.organizationId, "POST", path);
      const anonymous = fixture.platform.rest.as(undefined);
      const setUp = (token: string) => status(anonymous.post("/users/setup", { token, password: "a second password" }));
      expect(await setUp(lost.json.setup_token)).toBe(400);
      expect(await setUp(repeated.json.setup_token)).toBe(204);
      expect(await setUp(repeated.json.setup_token)).toBe(400);
      expect(await status(fixture.platform.rest.as(basic("cora", "a second password")).get("/me"))).toBe(200);
      expect(
        (await fixture.of(fixture.owner, fixture.organizationId, "POST", "/users/admin/reset")).json,
      ).toMatchObject({
        code: "not_possible",
      });
      expect((await fixture.of(fixture.owner, fixture.organizationId, "POST", "/users/nobody/reset")).status).toBe(404);
      await waitUntil("both resets are in the audit log", async () => {
        const { json } = await fixture.platform.rest.get<{ entries: Entry[] }>(
          "/audit-log?object=cora&action=user.reset",
        );
        return json.entries.filter(({ result }) => result === "ok").length === 2;
      });
    });

    it("no token outlives a reset, a password change or a removal that it was created concurrently with", async () => {
      const asOwner = (verb: string, path: string, body?: unknown) =>
        fixture.of(fixture.owner, fixture.organizationId, verb, path, body);
      const first = "a first password";
      const member = (id: string) => `/organizations/${fixture.organizationId}/members/${id}`;
      const ends: Record<string, (id: string) => Promise<{ status: number }>> = {
        reset: (id) => asOwner("POST", `/users/${id}/reset`),
        change: (id) =>
          fixture.platform.rest
            .as(basic(id, first))
            .post("/users/me/password", { current_password: first, new_password: "a second password" }),
        removal: (id) => asOwner("DELETE", member(id)),
      };
      for (const [name, end] of Object.entries(ends)) {
        const id = `race-${name}`;
        const racer = await fixture.newUser(id, first, "viewer");
        expect(await status(racer.get("/me"))).toBe(200);
        const create = () => racer.post<Created>("/tokens", { scopes: ["services:read"], ttl_seconds: 3_600 });
        const [ended, ...created] = await Promise.all([end(id), ...Array.from({ length: 8 }, create)]);
        expect([200, 204]).toContain(ended.status);
        if (name === "removal") {
          const body = { user_id: id, role: "viewer" };
          expect(await status(asOwner("POST", `/organizations/${fixture.organizationId}/members`, body))).toBe(201);
        }
        for (const { status: response, json } of created) {
          expect([201, 401, 403]).toContain(response);
          if (response !== 201) continue;
          expect(await status(fixture.platform.rest.as(`Bearer ${json.token}`).get("/managed-services"))).toBe(401);
        }
      }
    });

    it("a user is deleted with the last membership, and nothing of them remains", async () => {
      const as = (verb: string, path: string, body?: unknown) =>
        fixture.of(fixture.owner, fixture.organizationId, verb, path, body);
      const dora = await fixture.newUser("dora", "a first password", "developer");
      expect(await status(dora.get("/me"))).toBe(200);
      const { json: token } = await dora.post<Created>("/tokens", { scopes: ["services:read"], ttl_seconds: 3_600 });
      const holder = fixture.platform.rest.as(`Bearer ${token.token}`);
      expect(await status(holder.get("/managed-services"))).toBe(200);
      expect(await status(dora.delete("/users/dora"))).toBe(403);
      expect((await as("DELETE", "/users/dora")).json).toMatchObject({ status: 422, code: "not_possible" });
      expect((await as("DELETE", "/users/admin")).json).toMatchObject({ status: 422, code: "not_possible" });
      const member = `/organizations/${fixture.organizationId}/members/dora`;
      expect(await status(as("DELETE", member))).toBe(204);
      expect(await status(as("DELETE", "/users/dora"))).toBe(204);
      expect(await status(dora.get("/me"))).toBe(401);
      expect(await status(holder.get("/managed-services"))).toBe(401);
      expect(await status(as("DELETE", "/users/dora"))).toBe(404);
      await waitUntil("nothing of them is in the store but their token, until it ends", async () => {
        const keys = [...(await dumpEtcd(fixture.platform.directory)).keys()];
        return keys.every((key) => !key.endsWith("dora"));
      });
      // The name is free, and its next user has nothing of the previous one.
      await fixture.newUser("dora", "another password", "viewer");
      expect(await status(fixture.platform.rest.as(basic("dora", "a first password")).get("/me"))).toBe(401);
      expect(await status(holder.get("/managed-services"))).toBe(401);
    });

    it("a user who concurrently becomes a member of another organization remains, or is no member", async () => {
      const as = (verb: string, path: string, body?: unknown) =>
        fixture.of(fixture.owner, fixture.organizationId, verb, path, body);
      const members = `/organizations/${fixture.organizationId}/members`;
      for (let round = 0; round < 8; round += 1) {
        const id = `egon-${round}`;
        expect(await status(as("POST", "/users", { username: id }))).toBe(201);
        const [deleted, added] = await Promise.all([
          as("DELETE", `/users/${id}`),
          as("POST", members, { user_id: id, role: "viewer" }),
        ]);
        expect([
          [204, 404],
          [422, 201],
        ]).toContainEqual([deleted.status, added.status]);
        const isMember = added.status === 201;
        expect(await status(as("DELETE", `${members}/${id}`))).toBe(isMember ? 204 : 404);
        expect(await status(as("DELETE", `/users/${id}`))).toBe(isMember ? 204 : 404);
      }
    });

    it("an organization has a limited number of users, and can delete some for new ones", async () => {
      const { id } = (await fixture.owner.post<Created>("/organizations", { name: "few" })).json;
      const users = 3;
      const request = { organizationId: id, users, updateMask: { paths: ["users"] } };
      await asOperator(fixture.platform, OrganizationService, (rpcs) => rpcs.updateQuota(request));
      const make = (name: string) => fixture.of(fixture.owner, id, "POST", "/users", { username: name });
      const created = await Promise.all(Array.from({ length: 8 }, (_, index) => make(`few-${index}`)));
      const names = created.flatMap(({ status: code }, index) => (code === 201 ? [`few-${index}`] : []));
      expect(names).toHaveLength(users);
      expect((await make("few-more")).json).toMatchObject({
        status: 409,
        code: "quota_exceeded",
        quota: "users",
        used: users,
        // oxlint-disable-next-line holdfast/names -- a member of the API
        asked: 1,
        limit: users,
      });
      for (const name of names)
        expect(await status(fixture.of(fixture.owner, id, "DELETE", `/users/${name}`))).toBe(204);
      expect((await fixture.of(fixture.owner, id, "GET", `/organizations/${id}`)).json).toMatchObject({
        usage: { users: 0 },
      });
      expect((await make("few-more")).status).toBe(201);
      // A user of another organization does not exist for this caller.
      expect(await status(fixture.of(fixture.owner, fixture.organizationId, "DELETE", "/users/few-more"))).toBe(404);
      expect(await status(fixture.of(fixture.owner, id, "DELETE", "/users/few-more"))).toBe(204);
      expect(await status(fixture.owner.delete(`/organizations/${id}`))).toBe(204);
    });

    it("a user owns at most 20 organizations, with any number of concurrent requests", async () => {
      const gwen = await fixture.newUser("gwen", "a first password", "viewer");
      const make = (name: string) => fixture.of(gwen, fixture.organizationId, "POST", "/organizations", { name });
      const created = await Promise.all(Array.from({ length: 26 }, (_, index) => make(`gwens-${index}`)));
      const owned = created.flatMap(({ status: code, json }) => (code === 201 ? [json.id] : []));
      while (owned.length < 20) {
        const { status: code, json } = await make(`gwens-other-${owned.length}`);
        expect(code).toBe(201);
        owned.push(json.id);
      }
      expect((await make("one more")).json).toMatchObject({ status: 409, quota: "organizations", used: 20, limit: 20 });
      for (const id of owned) expect(await status(gwen.delete(`/organizations/${id}`))).toBe(204);
      expect(await status(make("room again"))).toBe(201);
    });
  });
}

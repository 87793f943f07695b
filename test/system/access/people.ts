import { describe, expect, it } from "vitest";
import { basic } from "../../support/rest.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { type AccessUnderTest, type Entry, status } from "./access-under-test.ts";

/** Users, their roles in an organization and their passwords. */
export function peopleCases(its: AccessUnderTest): void {
  describe("people", () => {
    it("a new person sets a password once, gets a role, and may do what it gives", async () => {
      const anna = await its.newPerson("anna", "correct horse battery", "developer");
      expect((await anna.get("/me")).json).toMatchObject({
        kind: "user",
        role: "developer",
        organization_id: its.organizationId,
      });
      expect(await status(anna.get("/managed-services"))).toBe(200);
      expect((await anna.post("/api-keys", { name: "k", scopes: ["services:read"] })).json).toMatchObject({
        code: "scope_missing",
        scope: "keys:write",
      });
      const me = `/organizations/${its.organizationId}/members/anna`;
      expect(await status(anna.patch(me, { role: "owner" }))).toBe(403);
      expect(await status(its.of(its.owner, its.organizationId, "PATCH", me, { role: "admin" }))).toBe(200);
      expect(await status(anna.patch(me, { role: "owner" }))).toBe(403);
      expect(await status(anna.patch(`/organizations/${its.organizationId}/members/admin`, { role: "viewer" }))).toBe(
        403,
      );
      expect(await status(anna.delete(`/organizations/${its.organizationId}`))).toBe(403);
    });

    it("the last owner stays", async () => {
      const path = `/organizations/${its.organizationId}/members/admin`;
      expect((await its.of(its.owner, its.organizationId, "DELETE", path)).json).toMatchObject({
        status: 409,
        code: "last_owner",
      });
      expect((await its.of(its.owner, its.organizationId, "PATCH", path, { role: "viewer" })).status).toBe(409);
    });

    it("a password changes with the old one, which is worth nothing from then on", async () => {
      const ben = await its.newPerson("ben", "a first password", "viewer");
      expect(await status(ben.get("/me"))).toBe(200);
      const wrong = { current_password: "not the password", new_password: "a second password" };
      expect(await status(ben.post("/users/me/password", wrong))).toBe(400);
      const right = { current_password: "a first password", new_password: "a second password" };
      expect(await status(ben.post("/users/me/password", right))).toBe(204);
      expect(await status(ben.get("/me"))).toBe(401);
      expect(await status(its.platform.rest.as(basic("ben", "a second password")).get("/me"))).toBe(200);
    });

    it("a lost password is set anew with a token that works once, by those who may", async () => {
      const cora = await its.newPerson("cora", "a first password", "viewer");
      const path = "/users/cora/reset";
      expect(await status(cora.post(path))).toBe(403);
      const lost = await its.of(its.owner, its.organizationId, "POST", path);
      expect(lost.json).toMatchObject({ id: "cora", setup_token: expect.stringMatching(/^hfu_/) });
      expect(await status(cora.get("/me"))).toBe(401);
      const again = await its.of(its.owner, its.organizationId, "POST", path);
      const anonymous = its.platform.rest.as(undefined);
      const setUp = (token: string) => status(anonymous.post("/users/setup", { token, password: "a second password" }));
      expect(await setUp(lost.json.setup_token)).toBe(400);
      expect(await setUp(again.json.setup_token)).toBe(204);
      expect(await setUp(again.json.setup_token)).toBe(400);
      expect(await status(its.platform.rest.as(basic("cora", "a second password")).get("/me"))).toBe(200);
      expect((await its.of(its.owner, its.organizationId, "POST", "/users/admin/reset")).json).toMatchObject({
        code: "not_possible",
      });
      expect((await its.of(its.owner, its.organizationId, "POST", "/users/nobody/reset")).status).toBe(404);
      await waitUntil("both resets are in the audit log", async () => {
        const { json } = await its.platform.rest.get<{ entries: Entry[] }>("/audit-log?object=cora&action=user.reset");
        return json.entries.filter(({ result }) => result === "ok").length === 2;
      });
    });
  });
}

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dumpEtcd } from "../support/etcd-dump.ts";
import { type Platform, startPlatform } from "../support/platform.ts";
import { basic, type Rest, type RestAnswer } from "../support/rest.ts";
import { createServices } from "../support/services.ts";
import { waitUntil } from "../support/wait-until.ts";

interface Created {
  readonly id: string;
  readonly secret: string;
  readonly token: string;
  readonly setup_token: string;
}

interface Entry {
  readonly actor: string;
  readonly action: string;
  readonly object_id: string;
  readonly result: string;
}

describe("people, organizations, keys and tokens", () => {
  let platform: Platform;
  let owner: Rest;
  let organizationId: string;

  beforeAll(async () => {
    platform = await startPlatform();
    owner = platform.rest.as(platform.operator);
    const { json } = await owner.get<{ organization_id: string }>("/me");
    organizationId = json.organization_id;
  });
  afterAll(() => platform?.remove());

  const of = (rest: Rest, organization: string, verb: string, path: string, body?: unknown) =>
    rest.call<Created & Record<string, unknown>>(verb, path, {
      headers: { "holdfast-organization": organization },
      ...(body === undefined ? {} : { body }),
    });
  const status = async (answer: Promise<RestAnswer<unknown>>) => (await answer).status;

  async function newPerson(username: string, password: string, role: string): Promise<Rest> {
    const made = await of(owner, organizationId, "POST", "/users", { username });
    expect(made.status).toBe(201);
    const anonymous = platform.rest.as(undefined);
    const body = { token: made.json.setup_token, password };
    expect(await status(anonymous.post("/users/setup", body))).toBe(204);
    expect(await status(anonymous.post("/users/setup", body))).toBe(400);
    const path = `/organizations/${organizationId}/members`;
    expect(await status(of(owner, organizationId, "POST", path, { user_id: username, role }))).toBe(201);
    return platform.rest.as(basic(username, password));
  }

  it("a new person sets a password once, gets a role, and may do what it gives", async () => {
    const anna = await newPerson("anna", "correct horse battery", "developer");
    expect((await anna.get("/me")).json).toMatchObject({
      kind: "user",
      role: "developer",
      organization_id: organizationId,
    });
    expect(await status(anna.get("/managed-services"))).toBe(200);
    expect((await anna.post("/api-keys", { name: "k", scopes: ["services:read"] })).json).toMatchObject({
      code: "scope_missing",
      scope: "keys:write",
    });
    const me = `/organizations/${organizationId}/members/anna`;
    expect(await status(anna.patch(me, { role: "owner" }))).toBe(403);
    expect(await status(of(owner, organizationId, "PATCH", me, { role: "admin" }))).toBe(200);
    expect(await status(anna.patch(me, { role: "owner" }))).toBe(403);
    expect(await status(anna.patch(`/organizations/${organizationId}/members/admin`, { role: "viewer" }))).toBe(403);
    expect(await status(anna.delete(`/organizations/${organizationId}`))).toBe(403);
  });

  it("the last owner stays", async () => {
    const path = `/organizations/${organizationId}/members/admin`;
    expect((await of(owner, organizationId, "DELETE", path)).json).toMatchObject({ status: 409, code: "last_owner" });
    expect((await of(owner, organizationId, "PATCH", path, { role: "viewer" })).status).toBe(409);
  });

  it("a password changes with the old one, which is worth nothing from then on", async () => {
    const ben = await newPerson("ben", "a first password", "viewer");
    expect(await status(ben.get("/me"))).toBe(200);
    const wrong = { current_password: "not the password", new_password: "a second password" };
    expect(await status(ben.post("/users/me/password", wrong))).toBe(400);
    const right = { current_password: "a first password", new_password: "a second password" };
    expect(await status(ben.post("/users/me/password", right))).toBe(204);
    expect(await status(ben.get("/me"))).toBe(401);
    expect(await status(platform.rest.as(basic("ben", "a second password")).get("/me"))).toBe(200);
  });

  it("a person of two organizations names one, and an organization without services can go", async () => {
    const made = await owner.post<Created>("/organizations", { name: "second" });
    expect(made.status).toBe(201);
    const { id } = made.json;
    expect((await owner.get("/managed-services")).json).toMatchObject({ status: 400, code: "organization_required" });
    expect((await owner.get<{ organizations: unknown[] }>("/organizations")).json.organizations).toHaveLength(2);
    expect((await of(owner, id, "GET", "/managed-services")).json).toEqual({ services: [], next_cursor: null });
    expect((await of(owner, id, "GET", `/organizations/${organizationId}`)).status).toBe(404);
    const key = await of(owner, id, "POST", "/api-keys", { name: "k", scopes: ["services:read"] });
    const keyed = platform.rest.as(basic(key.json.id, key.json.secret));
    expect(await status(keyed.get("/managed-services"))).toBe(200);
    expect((await of(owner, id, "DELETE", `/organizations/${id}`)).status).toBe(204);
    expect(await status(keyed.get("/managed-services"))).toBe(401);
  });

  it("a key grants what its maker has, shows its last use, turns with an overlap and ends at once", async () => {
    const made = await platform.rest.post<Created>("/api-keys", { name: "maker", scopes: ["services:read", "keys:*"] });
    expect(made.status).toBe(201);
    const maker = platform.rest.as(basic(made.json.id, made.json.secret));
    expect((await maker.post("/api-keys", { name: "more", scopes: ["services:write"] })).json).toMatchObject({
      status: 403,
      scope: "services:write",
    });
    expect(await status(maker.post(`/api-keys/${platform.admin.api_key_id}/rotate`, {}))).toBe(403);
    const unknown = await maker.post("/api-keys", { name: "x", scopes: ["platform:read", "services:fly"] });
    expect(unknown.json).toMatchObject({ errors: [{ field: "scopes[0]" }, { field: "scopes[1]" }] });
    const list = await maker.get<{ api_keys: { id: string; last_used_from: string }[] }>("/api-keys?limit=200");
    expect(list.json.api_keys.find(({ id }) => id === made.json.id)?.last_used_from).toBe("127.0.0.1");
    expect(list.text).not.toContain(made.json.secret);
    const turned = await platform.rest.post<Created>(`/api-keys/${made.json.id}/rotate`, { overlap_hours: 1 });
    expect(turned.status).toBe(200);
    expect(await status(maker.get("/me"))).toBe(200);
    const again = await platform.rest.post<Created>(`/api-keys/${made.json.id}/rotate`, {});
    expect(await status(maker.get("/me"))).toBe(401);
    const current = platform.rest.as(basic(again.json.id, again.json.secret));
    expect(await status(current.get("/me"))).toBe(200);
    expect(await status(platform.rest.delete(`/api-keys/${made.json.id}`))).toBe(204);
    expect(await status(current.get("/me"))).toBe(401);
  });

  it("a token limited to one service shows that one and makes nothing", async () => {
    const services = createServices(platform);
    const [mine, other] = [await services.create("mine"), await services.create("other")];
    const resources = [{ kind: "managed-service", id: mine.id }];
    const wanted = { scopes: ["services:read", "services:write"], ttl_seconds: 60, resources };
    const made = await platform.rest.post<Created>("/tokens", wanted);
    expect(made.status).toBe(201);
    const limited = platform.rest.as(`Bearer ${made.json.token}`);
    const list = await limited.get<{ services: { id: string }[] }>("/managed-services");
    expect(list.json.services.map(({ id }) => id)).toEqual([mine.id]);
    expect(await status(limited.get(`/managed-services/${other.id}`))).toBe(404);
    const body = { name: "new", database_type: "postgresql", plan_name: "tier-1", storage_size_gb: 1 };
    expect(await status(limited.post("/managed-services", body))).toBe(403);
    const seen = await limited.get<{ events: { service_id?: string; object_id?: string }[] }>("/events?limit=200");
    expect(seen.status).toBe(200);
    expect(seen.text).not.toContain(other.id);
    expect(await status(limited.get(`/managed-services/${other.id}/events`))).toBe(404);
    expect(await status(platform.rest.delete(`/organizations/${organizationId}`))).toBe(409);
    expect(await status(platform.rest.delete(`/tokens/${made.json.id}`))).toBe(204);
    expect(await status(limited.get("/managed-services"))).toBe(401);
  });

  it("what was done and refused is in the audit log, and nothing secret is in the store", async () => {
    const entries = async (query: string) =>
      (await platform.rest.get<{ entries: Entry[] }>(`/audit-log?${query}`)).json.entries;
    await waitUntil("the refusal is in the audit log", async () =>
      (await entries("actor=user:anna")).some(({ result }) => result === "refused"),
    );
    expect(await entries("object=anna&action=user.set-up")).toHaveLength(1);
    expect((await entries("action=member.add&limit=1"))[0]).toMatchObject({ actor: "user:admin", result: "ok" });
    const stored = [...(await dumpEtcd(platform.directory)).values()].join("\n");
    expect(stored).toContain("$argon2id$");
    for (const secret of ["correct horse battery", "a second password", "hfs_", "hft_"])
      expect(stored).not.toContain(secret);
  });

  it("tells how many requests are left", async () => {
    const { headers } = await platform.rest.get("/me");
    expect(Number(headers["ratelimit-remaining"])).toBeLessThan(Number(headers["ratelimit-limit"]));
  });
});

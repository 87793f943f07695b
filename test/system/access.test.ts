import { OperatorService, OrganizationService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dumpEtcd } from "../support/etcd-dump.ts";
import { grpcAs } from "../support/organizations.ts";
import { type Platform, startPlatform } from "../support/platform.ts";
import { basic, type Rest } from "../support/rest.ts";
import type { RestAnswer } from "../support/rest-answer.ts";
import { startSecondController } from "../support/second-controller.ts";
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
    // A path that names the organization needs no header, whatever the verb; what is not theirs does not exist.
    for (const each of [id, organizationId]) {
      expect((await owner.get(`/organizations/${each}`)).json).toMatchObject({ id: each });
      expect(await status(owner.get(`/organizations/${each}/members`))).toBe(200);
    }
    expect((await owner.patch(`/organizations/${id}`, { name: "the second" })).json).toMatchObject({ id });
    expect((await owner.get(`/organizations/${platform.admin.api_key_id}`)).json).toMatchObject({
      status: 404,
      code: "object_not_found",
    });
    const key = await of(owner, id, "POST", "/api-keys", { name: "k", scopes: ["services:read"] });
    const keyed = platform.rest.as(basic(key.json.id, key.json.secret));
    expect(await status(keyed.get("/managed-services"))).toBe(200);
    const webhook = await of(owner, id, "POST", "/webhooks", { url: "https://1.1.1.1/" });
    expect((await owner.delete(`/organizations/${id}`)).status).toBe(204);
    expect(await status(keyed.get("/managed-services"))).toBe(401);
    await waitUntil("nothing of it is left", async () => {
      const keys = [...(await dumpEtcd(platform.directory)).keys()].filter((name) => !name.includes("/outbox/"));
      return keys.every((name) => [id, key.json.id, webhook.json.id].every((gone) => !name.includes(gone)));
    });
  });

  it("an operator sets what an organization may have, which then sees the figures", async () => {
    const channel = grpcAs(platform, platform.operator);
    const rpcs = channel.of(OrganizationService);
    try {
      const small = (await rpcs.createOrganization({ name: "small", quota: { storageGb: 2 } })).id;
      const { apiKey, secret } = await rpcs.createApiKey({ organizationId: small, name: "k" });
      const rest = platform.rest.as(basic(apiKey?.id ?? "", secret));
      const set = (limits: Partial<Record<"webhooks" | "apiKeys" | "members", number>>, paths: string[]) =>
        rpcs.updateQuota({ organizationId: small, ...limits, updateMask: { paths } });
      const service = { name: "big", database_type: "postgresql", plan_name: "tier-1", storage_size_gb: 3 };
      expect((await rest.post("/managed-services", service)).json).toMatchObject({
        status: 409,
        code: "quota_exceeded",
        quota: "storage_gb",
        used: 0,
        asked: 3,
        limit: 2,
      });
      await set({ webhooks: 1, apiKeys: 1, members: 0 }, ["webhooks", "api_keys", "members"]);
      expect(await status(rest.post("/webhooks", { url: "https://1.1.1.1/" }))).toBe(201);
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
      const back = await set({}, ["webhooks"]);
      expect(back).toMatchObject({ quota: { webhooks: 20, apiKeys: 1 }, usage: { webhooks: 1 } });
      expect(await status(rest.post("/webhooks", { url: "https://1.1.1.1/" }))).toBe(201);
    } finally {
      channel.close();
    }
  });

  it("two requests at once, on whatever replica, never make one too many", async () => {
    const made = await owner.post<Created>("/organizations", { name: "crowd" });
    const { id } = made.json;
    const answers = await Promise.all(
      Array.from({ length: 24 }, () => of(owner, id, "POST", "/webhooks", { url: "https://1.1.1.1/" })),
    );
    const refused = answers.filter((answer) => answer.json["code"] === "webhook_limit_reached");
    expect(refused.length).toBeGreaterThan(0);
    const listed = await of(owner, id, "GET", "/webhooks?limit=200");
    expect(listed.json["webhooks"]).toHaveLength(20);
    expect(await status(owner.delete(`/organizations/${id}`))).toBe(204);
  });

  it("a lost password is set anew with a token that works once, by those who may", async () => {
    const cora = await newPerson("cora", "a first password", "viewer");
    const path = "/users/cora/reset";
    expect(await status(cora.post(path))).toBe(403);
    const lost = await of(owner, organizationId, "POST", path);
    expect(lost.json).toMatchObject({ id: "cora", setup_token: expect.stringMatching(/^hfu_/) });
    expect(await status(cora.get("/me"))).toBe(401);
    const again = await of(owner, organizationId, "POST", path);
    const anonymous = platform.rest.as(undefined);
    const setUp = (token: string) => status(anonymous.post("/users/setup", { token, password: "a second password" }));
    expect(await setUp(lost.json.setup_token)).toBe(400);
    expect(await setUp(again.json.setup_token)).toBe(204);
    expect(await setUp(again.json.setup_token)).toBe(400);
    expect(await status(platform.rest.as(basic("cora", "a second password")).get("/me"))).toBe(200);
    expect((await of(owner, organizationId, "POST", "/users/admin/reset")).json).toMatchObject({
      code: "not_possible",
    });
    expect((await of(owner, organizationId, "POST", "/users/nobody/reset")).status).toBe(404);
    await waitUntil("both resets are in the audit log", async () => {
      const { json } = await platform.rest.get<{ entries: Entry[] }>("/audit-log?object=cora&action=user.reset");
      return json.entries.filter(({ result }) => result === "ok").length === 2;
    });
  });

  it("operators make, turn and end the credentials of operators, and one of them stays", async () => {
    const first = grpcAs(platform, platform.operator);
    const operators = first.of(OperatorService);
    try {
      await expect(operators.revokeOperator({ username: "admin" })).rejects.toThrow(/only operator/);
      await expect(operators.createOperator({ username: "anna" })).rejects.toThrow(/in use/);
      const made = await operators.createOperator({ username: "olga" });
      const asOlga = async (password: string) => {
        const channel = grpcAs(platform, basic("olga", password));
        try {
          return (await channel.of(OperatorService).listOperators({})).operators.map(({ username }) => username);
        } finally {
          channel.close();
        }
      };
      expect(await asOlga(made.password)).toEqual(["admin", "olga"]);
      expect((await platform.rest.as(basic("olga", made.password)).get("/managed-services")).status).toBe(403);
      const turned = await operators.rotateOperator({ username: "olga" });
      await expect(asOlga(made.password)).rejects.toThrow("UNAUTHENTICATED");
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

  it("everybody makes and ends tokens of their own, and a token ends itself; what is of others needs keys:write", async () => {
    const vera = await newPerson("vera", "a third password", "viewer");
    const wanted = { scopes: ["services:read", "keys:read"], ttl_seconds: 60 };
    const [first, second] = [await vera.post<Created>("/tokens", wanted), await vera.post<Created>("/tokens", wanted)];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(await status(vera.post("/tokens", { ...wanted, scopes: ["services:write"] }))).toBe(403);
    const session = platform.rest.as(`Bearer ${first.json.token}`);
    expect((await session.post("/tokens", wanted)).json).toMatchObject({ status: 403, scope: "keys:write" });
    const foreign = await platform.rest.post<Created>("/tokens", wanted);
    for (const other of [vera, session]) {
      const refused = await other.delete(`/tokens/${foreign.json.id}`);
      expect(refused.json).toMatchObject({ status: 403, scope: "keys:write" });
    }
    expect(await status(session.delete(`/tokens/${second.json.id}`))).toBe(403);
    expect(await status(vera.delete(`/tokens/${second.json.id}`))).toBe(204);
    expect(await status(session.delete(`/tokens/${first.json.id}`))).toBe(204);
    expect(await status(session.get("/me"))).toBe(401);
  });

  it("what is revoked on one controller is refused on another as soon as that has seen it", async () => {
    const second = await startSecondController(platform);
    try {
      const scopes = ["services:read", "keys:read", "keys:write"];
      const key = await platform.rest.post<Created>("/api-keys", { name: "k", scopes });
      const ofKey = (on: Rest) => on.as(basic(key.json.id, key.json.secret));
      const token = await ofKey(platform.rest).post<Created>("/tokens", { scopes, ttl_seconds: 600 });
      expect([key.status, token.status]).toEqual([201, 201]);
      const revoked = [ofKey(second.rest), second.rest.as(`Bearer ${token.json.token}`)];
      // In use there, so that whatever a controller remembers of a good credential is remembered.
      for (const rest of revoked)
        await waitUntil("it works on the second one", async () => (await rest.get("/catalog")).status === 200);
      const { headers } = await platform.rest.delete(`/api-keys/${key.json.id}`);
      const revision = String(headers["holdfast-revision"]);
      // This read waits for the revision, as any reader may ask; 503 says that it is not there after a second.
      await waitUntil("the second one has seen it", async () => {
        for (const rest of revoked) await rest.get("/catalog");
        return (await second.rest.get("/catalog", { headers: { "holdfast-revision": revision } })).status === 200;
      });
      for (const rest of revoked) expect(await status(rest.get("/catalog"))).toBe(401);
    } finally {
      await second.stop();
    }
  });

  it("what was done and refused is in the audit log, and nothing secret is in the store", async () => {
    expect(await status(platform.rest.post("/api-keys", { surprise: 1 }))).toBe(400);
    const entries = async (query: string) =>
      (await platform.rest.get<{ entries: Entry[] }>(`/audit-log?${query}`)).json.entries;
    await waitUntil("the refusal is in the audit log", async () =>
      (await entries("actor=user:anna")).some(({ result }) => result === "refused"),
    );
    await waitUntil("so is that of a body that was not valid", async () =>
      (await entries("limit=50")).some(({ action }) => action === "CreateApiKey invalid_request"),
    );
    expect(await entries("object=anna&action=user.set-up")).toHaveLength(1);
    expect((await entries("action=member.add&limit=1"))[0]).toMatchObject({ actor: "user:admin", result: "ok" });
    const stored = [...(await dumpEtcd(platform.directory)).values()].join("\n");
    expect(stored).toContain("$argon2id$");
    for (const secret of ["correct horse battery", "a second password", "hfs_", "hft_", "hfu_"])
      expect(stored).not.toContain(secret);
  });

  it("tells how many requests are left", async () => {
    const { headers } = await platform.rest.get("/me");
    expect(Number(headers["ratelimit-remaining"])).toBeLessThan(Number(headers["ratelimit-limit"]));
  });
});

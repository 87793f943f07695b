import { request } from "node:https";
import { CATALOGUE } from "@holdfast/common/errors.ts";
import { eventTypes } from "@holdfast/controller/event/event-types.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createOrganizations } from "../support/organizations.ts";
import { type Platform, startPlatform } from "../support/platform.ts";
import { basic, type Rest } from "../support/rest.ts";
import type { PageJson, ProblemJson, ServiceJson } from "../support/service-json.ts";
import { createServices, expectStatus, type Services } from "../support/services.ts";

// That every answer has its headers, its problem document and its full shape is checked by the REST client itself.
describe("the API's contract", () => {
  let platform: Platform;
  let services: Services;
  let service: ServiceJson;
  let stranger: Rest;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    service = (await services.createRunning("main", { tags: { team: "data", stage: "test" } })).service;
    const organizations = createOrganizations(platform);
    const key = await organizations.createKey(await organizations.create("strangers"));
    organizations.close();
    stranger = platform.rest.as(key.authorization);
  });
  afterAll(() => platform?.remove());

  const path = (rest = "") => `/managed-services/${service.id}${rest}`;
  const valid = { name: "another", database_type: "postgresql", plan_name: "tier-1", storage_size_gb: 1 };

  async function faults(body: unknown, verb = "POST", at = "/managed-services"): Promise<(string | null)[]> {
    const answer = await platform.rest.call<ProblemJson>(verb, at, { body });
    expect(expectStatus(answer, 400).json.code).toBe("invalid_request");
    return answer.json.errors.map(({ pointer }) => pointer).sort();
  }

  describe("the shape of a body", () => {
    it.each([
      ["an unknown field", { ...valid, flavour: "x" }, ["/flavour"]],
      ["a camelCase twin", { ...valid, planName: "tier-1" }, ["/planName"]],
      ["a text for a number", { ...valid, storage_size_gb: "10" }, ["/storage_size_gb"]],
      ["a number for a text", { ...valid, name: 7 }, ["/name"]],
      ["a fraction for a whole number", { ...valid, storage_size_gb: 1.5 }, ["/storage_size_gb"]],
      ["a number beyond 2^53", { ...valid, storage_size_gb: 2 ** 60 }, ["/storage_size_gb"]],
      ["null where nothing can be cleared", { ...valid, name: null }, ["/name"]],
      ["a name that is too long", { ...valid, name: "a".repeat(41) }, ["/name"]],
      ["a name with a capital", { ...valid, name: "Main" }, ["/name"]],
      ["a reserved name", { ...valid, name: "catalog" }, ["/name"]],
      ["an engine that is not offered", { ...valid, database_type: "oracle" }, ["/database_type"]],
      ["a plan that is not offered", { ...valid, plan_name: "tier-3" }, ["/plan_name"]],
      ["a version that is not offered", { ...valid, version: "9" }, ["/version"]],
      ["a size out of range", { ...valid, storage_size_gb: 0 }, ["/storage_size_gb"]],
      ["a life that is too long", { ...valid, ttl_hours: 721 }, ["/ttl_hours"]],
      ["a tag that is no text", { ...valid, tags: { a: 1 } }, ["/tags/a"]],
      ["a network that is none", { ...valid, allowed_cidrs: ["10.0.0.0/40"] }, ["/allowed_cidrs/0"]],
      [
        "too many networks",
        { ...valid, allowed_cidrs: Array.from({ length: 257 }, (_, i) => `10.0.${i % 256}.0/24`) },
        ["/allowed_cidrs"],
      ],
      ["a parameter that is not of the engine", { ...valid, parameters: { no_such: "1" } }, ["/parameters/no_such"]],
    ])("refuses %s", async (_, body, pointers) => {
      expect(await faults(body)).toEqual(pointers);
    });

    it("tells all faults in one answer", async () => {
      const body = { name: "Bad Name", database_type: 1, plan_name: "", storage_size_gb: -1, surprise: true };
      expect(await faults(body)).toEqual(["/database_type", "/name", "/plan_name", "/storage_size_gb", "/surprise"]);
      const foreign = { plan_name: "tier-3", zone: "mars", storage_tier: "tape", parameters: { no_such: "1" } };
      expect(await faults({ ...valid, ...foreign, storage_size_gb: -1 })).toEqual([
        "/parameters/no_such",
        "/plan_name",
        "/storage_size_gb",
        "/storage_tier",
        "/zone",
      ]);
    });

    it("tells what is missing", async () => {
      expect(await faults({})).toEqual(["/database_type", "/name", "/plan_name", "/storage_size_gb"]);
    });

    it.each([
      ["a duplicate key", '{"name":"a","name":"b"}'],
      ["broken JSON", '{"name":'],
      ["two values", "{} {}"],
      ["an array", "[]"],
      ["a bare text", '"name"'],
      ["bytes that are no UTF-8", Buffer.from([0x22, 0xff, 0x22])],
    ])("refuses %s", async (_, rawBody) => {
      const headers = { "content-type": "application/json" };
      const answer = await platform.rest.call("POST", "/managed-services", { rawBody, headers });
      expectStatus(answer, 400);
    });

    it("takes an empty body as an empty object", async () => {
      const answer = await platform.rest.call<ProblemJson>("POST", "/managed-services");
      expect(expectStatus(answer, 400).json.errors).toHaveLength(4);
      expectStatus(await platform.rest.call("POST", path("/database-users/app_user/reveal-password")), 200);
    });

    it("refuses a change of what is fixed, or what is not there yet", async () => {
      for (const field of ["plan_name", "storage_size_gb", "database_type", "id", "status"]) {
        expect(await faults({ [field]: "x" }, "PATCH", path())).toEqual([`/${field}`]);
      }
      expect(await faults({ deletion_protection: null }, "PATCH", path())).toEqual(["/deletion_protection"]);
    });

    it("refuses an empty change", async () => {
      expectStatus(await platform.rest.patch(path(), {}), 400);
    });
  });

  describe("parameters of the query", () => {
    it.each([
      ["/managed-services?limit=0", "limit"],
      ["/managed-services?limit=201", "limit"],
      ["/managed-services?limit=ten", "limit"],
      ["/managed-services?cursor=junk", "cursor"],
      ["/managed-services?status=running", "status"],
      ["/managed-services?tag=nocolon", "tag"],
      ["/managed-services?nonsense=1", "nonsense"],
      ["/managed-services?limit=1&limit=2", "limit"],
      ["/catalog?x=1", "x"],
    ])("are refused: %s", async (at, field) => {
      const answer = await platform.rest.get<ProblemJson>(at);
      const [fault] = expectStatus(answer, 400).json.errors;
      expect(fault).toMatchObject({ field, pointer: null });
    });
  });

  describe("statuses of HTTP", () => {
    it("answers 404 to an unknown path before it asks who calls", async () => {
      expect((await platform.rest.as(undefined).get<ProblemJson>("/no-such-path")).json.code).toBe("not_found");
    });

    it("answers 405 with the methods that there are", async () => {
      const answer = await platform.rest.as(undefined).call("PUT", "/managed-services");
      expect(expectStatus(answer, 405).headers.allow?.split(", ").sort()).toEqual(
        expect.arrayContaining(["GET", "POST"]),
      );
      expectStatus(await platform.rest.delete("/catalog"), 405);
    });

    it("answers 401 with both challenges to every wrong credential", async () => {
      const wrong = [
        undefined,
        "Basic",
        "Basic !!!",
        "Bearer hft_wrong",
        "Digest x",
        basic(platform.admin.api_key_id, "wrong"),
        basic("hfk_nobody", platform.admin.api_key_secret),
        basic(platform.admin.username, "wrong"),
        basic("nobody", platform.admin.password),
      ];
      for (const authorization of wrong) {
        expectStatus(await platform.rest.as(authorization).get("/managed-services"), 401);
      }
    });

    it("takes the operator's password, the owner's key and the token", async () => {
      const good = [
        platform.operator,
        platform.owner,
        `Bearer ${platform.admin.token}`,
        `bearer ${platform.admin.token}`,
      ];
      for (const authorization of good) {
        expectStatus(await platform.rest.as(authorization).get("/managed-services"), 200);
      }
    });

    it("answers 415 to a body that is not JSON, and only to a body", async () => {
      const text = { "content-type": "text/plain" };
      expectStatus(await platform.rest.call("POST", "/managed-services", { rawBody: "x", headers: text }), 415);
      expectStatus(await platform.rest.call("POST", "/managed-services", { rawBody: "{}", headers: {} }), 415);
      expectStatus(await platform.rest.call("GET", path(), { headers: text }), 200);
    });

    it("answers 413 to a body over the limit, announced or not", async () => {
      const rawBody = JSON.stringify({ ...valid, tags: { filler: "x".repeat(1_100_000) } });
      const headers = { "content-type": "application/json" };
      expectStatus(await platform.rest.call("POST", "/managed-services", { rawBody, headers }), 413);
      expect(await sendChunked(platform, rawBody)).toBe(413);
    });

    it("answers 403 to a page of another site", async () => {
      const headers = { "sec-fetch-site": "cross-site" };
      const answer = await platform.rest.get<ProblemJson>("/managed-services", { headers });
      expect(expectStatus(answer, 403).json.code).toBe("cross_site_request");
    });

    it("checks the credential before the body, and the body before the object", async () => {
      expectStatus(await platform.rest.as(undefined).post("/managed-services", { bad: 1 }), 401);
      expectStatus(await platform.rest.patch("/managed-services/none", { bad: 1 }), 400);
      expectStatus(await platform.rest.patch("/managed-services/none", { name: "new" }), 404);
    });

    it("needs no credential for its description and its health", async () => {
      const open = platform.rest.as(undefined);
      const description = await open.get<{ openapi: string; paths: object; webhooks: object }>("/openapi.json");
      expect(expectStatus(description, 200).json.openapi).toMatch(/^3\.1/);
      expect(Object.keys(description.json.webhooks)).toEqual([...eventTypes.keys()]);
      expect(Object.keys(description.json.paths)).toContain("/managed-services/{id}");
      expectStatus(await open.get("/healthz"), 200);
    });

    it("describes each error on a page of its own", async () => {
      const open = platform.rest.as(undefined);
      for (const key of Object.keys(CATALOGUE)) {
        const code = key.toLowerCase();
        expect(expectStatus(await open.get(`/docs/errors/${code}`), 200).text).toContain(code);
      }
      expectStatus(await open.get("/docs/errors/no_such_error"), 404);
    });

    it("takes HEAD where it takes GET", async () => {
      const answer = await platform.rest.call("HEAD", "/catalog");
      expect(answer).toMatchObject({ status: 200, text: "" });
    });
  });

  describe("objects of another organization", () => {
    it("do not exist", async () => {
      const body = { body: { name: "new" } };
      const asked: [string, string, object?][] = [
        ["GET", path()],
        ["PATCH", path(), body],
        ["DELETE", path()],
        ["POST", path("/stop")],
        ["GET", path("/connection")],
        ["GET", path("/database-users")],
        ["POST", path("/database-users/app_user/reveal-password")],
        ["GET", `/operations/${(await services.operations(service.id))[0]?.id}`],
      ];
      for (const [verb, at, options] of asked) {
        expect([verb, at, (await stranger.call(verb, at, options)).status]).toEqual([verb, at, 404]);
      }
      expect((await stranger.get<PageJson<"services", object>>("/managed-services")).json.services).toEqual([]);
    });

    it("do not take names from each other", async () => {
      const body = { ...valid, name: "main" };
      const answer = await stranger.post<ServiceJson>("/managed-services", body);
      expect(expectStatus(answer, 202).json.hostname).not.toBe(service.hostname);
      expectStatus(await stranger.delete(`/managed-services/${answer.json.id}`), 202);
      await createServices(platform, stranger).gone(answer.json.id);
    });
  });

  describe("Idempotency-Key", () => {
    it("gives one answer and one service, however often it is sent", async () => {
      const options = { headers: { "idempotency-key": "create-once" } };
      const body = { ...valid, name: "once" };
      const both = await Promise.all([
        platform.rest.post<ServiceJson>("/managed-services", body, options),
        platform.rest.post<ServiceJson>("/managed-services", body, options),
      ]);
      const third = await platform.rest.post<ServiceJson>("/managed-services", { ...body }, options);
      expect(both.map(({ status }) => status)).toEqual([202, 202]);
      expect(new Set([...both, third].map(({ text }) => text)).size).toBe(1);
      expect(third.headers["idempotency-replayed"]).toBe("true");
      expect(both.filter(({ headers }) => headers["idempotency-replayed"] === undefined)).toHaveLength(1);

      const other = await platform.rest.post<ProblemJson>(
        "/managed-services",
        { ...body, storage_size_gb: 2 },
        options,
      );
      expect(expectStatus(other, 422).json.code).toBe("idempotency_key_reused");
      await services.delete(third.json.id);
      const late = await platform.rest.post<ServiceJson>("/managed-services", body, options);
      expect(late.text).toBe(third.text);
    });

    it("keeps refusals too, and belongs to one path and one organization", async () => {
      const options = { headers: { "idempotency-key": "refused" } };
      const first = await platform.rest.post("/managed-services", { ...valid, name: "main" }, options);
      expectStatus(first, 409);
      expect(
        (await platform.rest.post("/managed-services", { ...valid, name: "main" }, options)).headers,
      ).toMatchObject({
        "idempotency-replayed": "true",
      });
      expectStatus(await platform.rest.post(path("/start"), undefined, options), 409);
      expectStatus(await stranger.post("/managed-services", { ...valid, name: "NO" }, options), 400);
    });

    it("is refused when it is no key", async () => {
      for (const key of ["x".repeat(256), "caf\u00e9"]) {
        const answer = await platform.rest.post("/managed-services", valid, { headers: { "idempotency-key": key } });
        expectStatus(answer, 400);
      }
    });
  });

  describe("If-Match", () => {
    it("lets through the generation that was read, and no other", async () => {
      const { etag } = (await platform.rest.get(path())).headers;
      expect(etag).toMatch(/^"\d+"$/);
      const headers = { "if-match": etag ?? "" };
      const changed = await platform.rest.patch<ServiceJson>(path(), { tags: { team: "data" } }, { headers });
      expect(expectStatus(changed, 200).headers.etag).not.toBe(etag);
      expectStatus(await platform.rest.patch(path(), { tags: {} }, { headers }), 412);
      expectStatus(
        await platform.rest.patch(path(), { tags: { team: "data" } }, { headers: { "if-match": "*" } }),
        200,
      );
    });
  });

  describe("Holdfast-Revision", () => {
    it("comes with each mutation, and a read that sends it sees what was written", async () => {
      const change = await platform.rest.patch(path(), { tags: { team: "data", turn: "1" } });
      const revision = String(change.headers["holdfast-revision"]);
      expect(revision).toMatch(/^\d+$/);
      const read = await platform.rest.get<ServiceJson>(path(), { headers: { "holdfast-revision": revision } });
      expect(read.json.tags["turn"]).toBe("1");
      expectStatus(await platform.rest.get(path(), { headers: { "holdfast-revision": "soon" } }), 400);
    });
  });

  describe("lists", () => {
    const names = ["list-a", "list-b", "list-c", "list-d", "list-e"];
    beforeAll(async () => {
      // Created but never awaited: a list shows what exists, whatever its state.
      for (const name of names) await services.create(name, { tags: { list: "yes" } });
    });
    afterAll(async () => {
      const { json } = await platform.rest.get<PageJson<"services", ServiceJson>>("/managed-services?tag=list:yes");
      for (const { id } of json.services) await platform.rest.delete(`/managed-services/${id}`);
      for (const { id } of json.services) await services.gone(id);
    });

    it("come in pages that together are all of them, oldest first", async () => {
      const seen: string[] = [];
      for (let cursor = ""; ; ) {
        const at = `/managed-services?limit=2&tag=list:yes${cursor}`;
        const { json } = expectStatus(await platform.rest.get<PageJson<"services", ServiceJson>>(at), 200);
        expect(json.services.length).toBeLessThanOrEqual(2);
        seen.push(...json.services.map(({ name }) => name));
        if (json.next_cursor === null) break;
        cursor = `&cursor=${encodeURIComponent(json.next_cursor)}`;
      }
      expect(seen).toEqual(names);
    });

    it("refuse a cursor of another filter, another list and another organization", async () => {
      const { json } = await platform.rest.get<PageJson<"services", ServiceJson>>("/managed-services?limit=1");
      const cursor = `cursor=${encodeURIComponent(json.next_cursor ?? "")}`;
      expectStatus(await platform.rest.get(`/managed-services?limit=1&${cursor}`), 200);
      expectStatus(await platform.rest.get(`/managed-services?tag=list:yes&${cursor}`), 400);
      expectStatus(await platform.rest.get(`${path("/operations")}?${cursor}`), 400);
      expectStatus(await stranger.get(`/managed-services?${cursor}`), 400);
    });

    it("filter by name, status, engine and tag", async () => {
      const list = async (query: string) =>
        (await platform.rest.get<PageJson<"services", ServiceJson>>(`/managed-services?${query}`)).json.services.map(
          ({ name }) => name,
        );
      expect(await list("name=list-c")).toEqual(["list-c"]);
      expect(await list("tag=list:yes")).toEqual(names);
      expect(await list("tag=list:no")).toEqual([]);
      expect(await list("status=Running&name=main")).toEqual(["main"]);
      expect(await list("database_type=valkey")).toEqual([]);
    });
  });

  describe("the catalogue", () => {
    it("tells engines, plans, tiers, zones, limits and prices", async () => {
      const { json } = await platform.rest.get<{
        engines: { database_type: string; default_version: string; parameters: { name: string; type: string }[] }[];
        plans: { plan_name: string; vcpu: number; memory_gb: number; monthly_cost: number }[];
        storage_tiers: { storage_tier: string }[];
        zones: object[];
        limits: Record<string, number>;
        default_allowed_cidrs: string[];
        currency: string;
      }>("/catalog");
      expect(json.engines.map((engine) => engine.database_type)).toEqual(["postgresql", "valkey"]);
      expect(json.engines[0]?.default_version).toBe("17");
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
    it("refuses one service more, with the figures", async () => {
      const organizations = createOrganizations(platform);
      const key = await organizations.createKey(await organizations.create("small", 1));
      organizations.close();
      const small = platform.rest.as(key.authorization);
      const first = await small.post<ServiceJson>("/managed-services", valid);
      expectStatus(first, 202);
      const second = await small.post<ProblemJson>("/managed-services", { ...valid, name: "second" });
      expect(expectStatus(second, 409).json).toMatchObject({
        code: "quota_exceeded",
        quota: "services",
        used: 1,
        asked: 1,
        limit: 1,
      });
      expectStatus(await small.delete(`/managed-services/${first.json.id}`), 202);
      await createServices(platform, small).gone(first.json.id);
      const third = await small.post<ServiceJson>("/managed-services", { ...valid, name: "second" });
      expectStatus(third, 202);
      expectStatus(await small.delete(`/managed-services/${third.json.id}`), 202);
    });
  });
});

/** Sends a body without a Content-Length; resolves to the status. */
function sendChunked(platform: Platform, body: string): Promise<number> {
  const headers = { authorization: platform.owner, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const options = { method: "POST", headers, ca: platform.ca };
    const outgoing = request(`${platform.rest.baseUrl}/managed-services`, options, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    outgoing.once("error", reject);
    for (let start = 0; start < body.length; start += 65_536) outgoing.write(body.slice(start, start + 65_536));
    outgoing.end();
  });
}

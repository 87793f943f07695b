import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type CallOptions, reader, startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.close());
beforeEach(() => gateway.state.services.clear());

const good = { name: "orders", database_type: "postgresql", plan_name: "dev", storage_size_gb: 1 };

async function createService(name = "orders"): Promise<{ id: string }> {
  const { json } = await gateway.call("POST", "/managed-services", { body: { ...good, name } });
  return json;
}

describe("responses", () => {
  test("a creation is 202 with the object, its path, a revision and an ETag", async () => {
    const { status, headers, json } = await gateway.call("POST", "/managed-services", {
      body: { ...good, tags: { team: "a" } },
    });
    expect(status).toBe(202);
    expect(headers.location).toBe(`/managed-services/${json.id}`);
    expect(headers).toMatchObject({
      "holdfast-revision": "42",
      etag: '"1"',
      "cache-control": "no-store",
      "content-type": "application/json",
    });
    expect(headers["request-id"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(json).toMatchObject({
      status: "Pending",
      tags: { team: "a" },
      operation: null,
      ttl_hours: null,
      error: null,
    });
    expect(json.created_at).toMatch(/Z$/);
  });

  test("every documented field is there", async () => {
    const { json } = await gateway.call("GET", "/catalog");
    expect(json).toEqual({
      engines: [],
      files: { available: false, reason: null },
      plans: [],
      storage_tiers: [],
      zones: [],
      default_allowed_cidrs: [],
      currency: "EUR",
      metrics: [],
      limits: {
        storage_size_gb_min: 0,
        storage_size_gb_max: 0,
        ttl_hours_min: 0,
        ttl_hours_max: 0,
        allowed_cidrs_max: 0,
        tags_max: 0,
      },
    });
  });

  test("64-bit integers are numbers", async () => {
    const { json } = await gateway.call("GET", "/managed-services/x/databases");
    expect(json.databases[0].size_bytes).toBe(2 ** 40);
  });

  test("a fault lists the allowed values by their JSON names", async () => {
    const body = { username: "reports", role: "custom" };
    const { json } = await gateway.call("POST", "/managed-services/x/database-users", { body });
    expect(json.errors).toEqual([
      { field: "role", pointer: "/role", code: "enum_in", detail: "must be one of admin, readwrite, readonly" },
    ]);
  });

  test("204 has no body", async () => {
    const { status, text, headers } = await gateway.call("DELETE", "/managed-services/x/databases/y");
    expect([status, text, headers["content-type"]]).toEqual([204, "", undefined]);
  });

  test("HEAD is GET without the body", async () => {
    const { id } = await createService();
    const { status, text, headers } = await gateway.call("HEAD", `/managed-services/${id}`);
    expect([status, text, headers["content-type"]]).toEqual([200, "", "application/json"]);
    expect(Number(headers["content-length"])).toBeGreaterThan(100);
  });

  test("a path variable may contain an encoded slash", async () => {
    const { json } = await gateway.call("GET", "/managed-services/x/database-users/a%2Fb");
    expect(json.username).toBe("a/b");
  });

  test("PATCH changes the keys that are present, and null clears", async () => {
    const { id } = await createService();
    const path = `/managed-services/${id}`;
    expect((await gateway.call("PATCH", path, { body: { ttl_hours: 5, allowed_cidrs: [] } })).json).toMatchObject({
      ttl_hours: 5,
      allowed_cidrs: [],
    });
    expect((await gateway.call("PATCH", path, { body: { name: "other" } })).json).toMatchObject({
      name: "other",
      ttl_hours: 5,
    });
    expect((await gateway.call("PATCH", path, { body: { ttl_hours: null } })).json).toMatchObject({
      name: "other",
      ttl_hours: null,
    });
    expect((await gateway.call("PATCH", path)).json.errors).toEqual([
      expect.objectContaining({ pointer: "", code: "empty_change" }),
    ]);
  });

  test("If-Match reaches the handler", async () => {
    const { id } = await createService();
    const patch = (etag: string) =>
      gateway.call("PATCH", `/managed-services/${id}`, { body: { tags: {} }, headers: { "if-match": etag } });
    expect((await patch('"1"')).status).toBe(200);
    expect((await patch('"7"')).status).toBe(412);
    expect((await patch("7")).json.errors[0]).toMatchObject({ field: "If-Match", pointer: null });
  });

  test("a read waits for the revision that the caller has seen", async () => {
    const at = (revision: string) => gateway.call("GET", "/catalog", { headers: { "holdfast-revision": revision } });
    expect((await at("42")).status).toBe(200);
    const late = await at("5000");
    expect([late.status, late.headers["retry-after"]]).toEqual([503, "1"]);
    expect((await at("x")).status).toBe(400);
  });

  test("the limit of waits of a credential does not stop its other reads", async () => {
    const arrival = Promise.withResolvers<void>();
    gateway.arrival = arrival.promise;
    const at = (headers: Record<string, string>) => gateway.call("GET", "/catalog", { headers });
    const waits = Array.from({ length: 3 }, () => at({ "holdfast-revision": "999" }));
    const refused = await Promise.race(waits);
    expect([refused.status, refused.json.detail]).toEqual([
      429,
      expect.stringContaining("waits for a Holdfast-Revision"),
    ]);
    expect((await at({})).status).toBe(200);
    arrival.resolve();
    expect((await Promise.all(waits)).map(({ status }) => status).sort()).toEqual([200, 200, 429]);
  });
});

describe("refusals", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  const cases: [sentence: string, verb: string, path: string, options: CallOptions, status: number, code: string][] = [
    ["an unknown path is 404 before the credential",     "GET",    "/nothing",             { authorization: null },                                     404, "not_found"],
    ["an empty segment is no path",                      "GET",    "/managed-services//nodes", {},                                                      404, "not_found"],
    ["a broken escape is no path",                       "GET",    "/managed-services/%zz", {},                                                         404, "not_found"],
    ["another method is 405",                            "PUT",    "/managed-services",    { authorization: null },                                     405, "method_not_allowed"],
    ["OPTIONS is 405: there is no CORS",                 "OPTIONS", "/managed-services",   {},                                                          405, "method_not_allowed"],
    ["pages cannot be written",                          "POST",   "/openapi.json",        {},                                                          405, "method_not_allowed"],
    ["no credential is 401 before the body",             "POST",   "/managed-services",    { text: "{", authorization: null },                          401, "unauthenticated"],
    ["a wrong credential is 401",                        "GET",    "/managed-services",    { authorization: "Basic eDp5" },                             401, "unauthenticated"],
    ["a missing scope is 403 before the body",           "POST",   "/managed-services",    { text: "{", authorization: reader },                        403, "scope_missing"],
    ["another site is 403",                              "GET",    "/managed-services",    { headers: { "sec-fetch-site": "cross-site" } },             403, "cross_site_request"],
    ["another origin of the site is 403",                "POST",   "/managed-services",    { body: good, headers: { "sec-fetch-site": "same-site" } },  403, "cross_site_request"],
    ["an opaque origin is 403",                           "POST",   "/managed-services",    { body: good, headers: { origin: "null" } },                 403, "cross_site_request"],
    ["a foreign origin is 403",                          "POST",   "/managed-services",    { body: good, headers: { origin: "https://other.example" } }, 403, "cross_site_request"],
    ["the own host without TLS is 403",                  "POST",   "/managed-services",    { body: good, headers: { origin: "http://localhost" } },     403, "cross_site_request"],
    ["another port of the own host is 403",              "POST",   "/managed-services",    { body: good, headers: { origin: "https://localhost:1" } },  403, "cross_site_request"],
    ["an unknown value of Sec-Fetch-Site is 403",        "GET",    "/managed-services",    { headers: { "sec-fetch-site": "none, none" } },             403, "cross_site_request"],
    ["another site is 403 before the credential",        "GET",    "/managed-services",    { authorization: null, headers: { origin: "null" } },        403, "cross_site_request"],
    ["bad JSON is 400",                                  "POST",   "/managed-services",    { text: '{"name":}' },                                       400, "invalid_request"],
    ["bad UTF-8 is 400",                                 "POST",   "/managed-services",    { text: Buffer.from([0x22, 0xff, 0x22]) },                   400, "invalid_request"],
    ["an array is no body",                              "POST",   "/managed-services",    { text: "[]" },                                              400, "invalid_request"],
    ["deep nesting is 400",                              "POST",   "/managed-services",    { text: "[".repeat(60_000) },                               400, "invalid_request"],
    ["another content type is 415",                      "POST",   "/managed-services",    { body: good, headers: { "content-type": "text/plain" } },   415, "unsupported_media_type"],
    ["a compressed body is 415",                         "POST",   "/managed-services",    { body: good, headers: { "content-encoding": "gzip" } },     415, "unsupported_media_type"],
    ["a large body is 413",                              "POST",   "/managed-services",    { text: " ".repeat(20 * 1024 * 1024) },                      413, "body_too_large"],
    ["a body of a method without one is 400",            "GET",    "/managed-services",    { body: { a: 1 } },                                          400, "invalid_request"],
    ["the shape comes before the object",                "PATCH",  "/managed-services/no", { body: { x: 1 } },                                          400, "invalid_request"],
    ["an unknown object is 404",                         "GET",    "/managed-services/no", {},                                                          404, "service_not_found"],
    ["an unavailable store is 503",                      "GET",    "/operations/x",        {},                                                          503, "store_unavailable"],
    ["an unforeseen error is 500",                       "POST",   "/managed-services/x/restart", {},                                                   500, "internal"],
  ];
  for (const [sentence, verb, path, options, status, code] of cases) {
    test(sentence, async () => {
      const answer = await gateway.call(verb, path, options);
      expect(answer.status).toBe(status);
      expect(answer.headers["content-type"]).toBe("application/problem+json");
      expect(answer.headers["cache-control"]).toBe("no-store");
      expect(answer.json).toMatchObject({
        status,
        code,
        type: `${gateway.baseUrl}/docs/errors/${code}`,
        instance: `urn:uuid:${answer.headers["request-id"]}`,
      });
      expect(answer.json.errors.length > 0).toBe(status === 400);
      expect((await gateway.call("GET", new URL(answer.json.type).pathname)).status).toBe(200);
    });
  }

  test("changes refused before their handler are reported, reads are not", async () => {
    gateway.refused.length = 0;
    const post = (options: CallOptions) => gateway.call("POST", "/managed-services", options);
    await post({ body: {}, authorization: null });
    await post({ body: {}, authorization: reader });
    await post({ body: {} });
    await post({ body: {}, headers: { "idempotency-key": "reported" } });
    await post({ text: "{" });
    await gateway.call("PATCH", "/managed-services/one", { body: { surprise: 1 } });
    await gateway.call("GET", "/catalog", { authorization: null });
    await gateway.call("GET", "/managed-services?limit=0");
    expect(
      gateway.refused.map(({ method, principal, error }) => `${method.name} ${principal?.id} ${error.code}`),
    ).toEqual([
      "CreateManagedService undefined unauthenticated",
      "CreateManagedService hfk_reader scope_missing",
      "CreateManagedService hfk_owner invalid_request",
      "CreateManagedService hfk_owner invalid_request",
      "CreateManagedService hfk_owner invalid_request",
      "UpdateManagedService hfk_owner invalid_request",
    ]);
    expect(gateway.refused.at(-1)?.input).toMatchObject({ id: "one" });
  });

  test("401 has both schemes, 405 the methods, 409 its members", async () => {
    expect((await gateway.call("GET", "/catalog", { authorization: null })).headers["www-authenticate"]).toMatch(
      /^Basic .*, Bearer /,
    );
    expect((await gateway.call("PUT", "/managed-services")).headers.allow).toBe("POST, GET, HEAD");
    const { id } = await createService();
    expect((await gateway.call("POST", `/managed-services/${id}/stop`)).json).toMatchObject({
      status: 409,
      service_status: "Pending",
      operation: null,
    });
  });

  test("an unexpected error shows no details and is logged once", async () => {
    gateway.logged.length = 0;
    const { text } = await gateway.call("POST", "/managed-services/x/restart");
    expect(text).not.toContain("secret cause");
    expect(gateway.logged).toHaveLength(1);
  });

  test("all faults are in one answer, each with its pointer", async () => {
    const text =
      '{"name": "Orders", "databaseType": "x", "plan_name": 5, "storage_size_gb": "10", "allowed_cidrs": ["", 7], "tags": {"a b": "x"}, "name": "y", "ttl_hours": null, "update_mask": "name"}';
    const { json } = await gateway.call("POST", "/managed-services", { text });
    const found = json.errors
      .map((error: { pointer: string; code: string }) => `${error.pointer} ${error.code}`)
      .sort();
    expect(found).toEqual([
      "/allowed_cidrs/0 cidr",
      "/allowed_cidrs/1 wrong_type",
      "/databaseType unknown_field",
      "/database_type required",
      "/name duplicate_key",
      "/plan_name wrong_type",
      "/storage_size_gb wrong_type",
      "/tags/a b string_pattern",
      "/ttl_hours null_not_allowed",
      "/update_mask unknown_field",
    ]);
    expect(json.errors.find((error: { pointer: string }) => error.pointer === "/allowed_cidrs/1").field).toBe(
      "allowed_cidrs[1]",
    );
  });

  test("a change of a fixed field is distinguished from a change of an unknown field", async () => {
    const { id } = await createService();
    const change = { zone: "elsewhere", storageSizeGb: 5, color: "red" };
    const { json } = await gateway.call("PATCH", `/managed-services/${id}`, { text: JSON.stringify(change) });
    expect(json.errors).toEqual([
      { field: "zone", pointer: "/zone", code: "fixed", detail: "cannot be changed" },
      expect.objectContaining({ field: "storageSizeGb", code: "unknown_field" }),
      expect.objectContaining({ field: "color", code: "unknown_field" }),
    ]);
  });

  test("query parameters are strict", async () => {
    const { status, json } = await gateway.call(
      "GET",
      "/managed-services?limit=0&status=running&nope=1&name=a&name=b&database_type=%ff",
    );
    expect(status).toBe(400);
    expect(json.errors).toEqual([
      expect.objectContaining({ field: "status", pointer: null, code: "unknown_value" }),
      expect.objectContaining({ field: "nope", pointer: null, code: "unknown_parameter" }),
      expect.objectContaining({ field: "name", pointer: null, code: "repeated_parameter" }),
      expect.objectContaining({ field: "database_type", pointer: null, code: "invalid_text" }),
      expect.objectContaining({ field: "limit", pointer: null, code: "int32_gte_lte" }),
    ]);
    expect((await gateway.call("GET", "/managed-services?limit=200&status=Running")).status).toBe(200);
    expect((await gateway.call("GET", "/managed-services?limit=ten")).status).toBe(400);
    expect((await gateway.call("GET", "/managed-services/x/logs?since=yesterday")).status).toBe(400);
  });
});

import { request } from "node:https";
import { databaseEngines } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { CATALOG } from "@holdfast/common/errors.ts";
import { eventTypes } from "@holdfast/controller/systems.ts";
import { describe, expect, it } from "vitest";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { basic } from "@holdfast/testing/api/rest.ts";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { type ApiUnderTest, validService as valid } from "./api-under-test.ts";

/** Statuses of HTTP, and their order of precedence. */
export function statusCases(fixture: ApiUnderTest): void {
  describe("statuses of HTTP", () => {
    it("an unknown path is 404 before the caller is authenticated", async () => {
      expect((await fixture.platform.rest.as(undefined).get<ProblemJson>("/no-such-path")).json.code).toBe("not_found");
    });

    it("returns 405 with the supported methods", async () => {
      const response = await fixture.platform.rest.as(undefined).call("PUT", "/managed-services");
      expect(expectStatus(response, 405).headers.allow?.split(", ").sort()).toEqual(
        expect.arrayContaining(["GET", "POST"]),
      );
      expectStatus(await fixture.platform.rest.delete("/catalog"), 405);
    });

    it("returns 401 with both challenges for every wrong credential", async () => {
      const wrong = [
        undefined,
        "Basic",
        "Basic !!!",
        "Bearer hft_wrong",
        "Digest x",
        basic(fixture.platform.admin.api_key_id, "wrong"),
        basic("hfk_nobody", fixture.platform.admin.api_key_secret),
        basic(fixture.platform.admin.username, "wrong"),
        basic("nobody", fixture.platform.admin.password),
      ];
      for (const authorization of wrong) {
        expectStatus(await fixture.platform.rest.as(authorization).get("/managed-services"), 401);
      }
    });

    it("accepts the operator's password, the owner's key and the token", async () => {
      const valid = [
        fixture.platform.operator,
        fixture.platform.owner,
        `Bearer ${fixture.platform.admin.token}`,
        `bearer ${fixture.platform.admin.token}`,
      ];
      for (const authorization of valid) {
        expectStatus(await fixture.platform.rest.as(authorization).get("/managed-services"), 200);
      }
    });

    it("returns 415 for a body that is not JSON, and only for a body", async () => {
      const text = { "content-type": "text/plain" };
      expectStatus(await fixture.platform.rest.call("POST", "/managed-services", { rawBody: "x", headers: text }), 415);
      expectStatus(await fixture.platform.rest.call("POST", "/managed-services", { rawBody: "{}", headers: {} }), 415);
      expectStatus(await fixture.platform.rest.call("GET", fixture.path(), { headers: text }), 200);
    });

    it("returns 413 for a body over the limit, with or without a length", async () => {
      const rawBody = JSON.stringify({ ...valid, tags: { filler: "x".repeat(1_100_000) } });
      const headers = { "content-type": "application/json" };
      expectStatus(await fixture.platform.rest.call("POST", "/managed-services", { rawBody, headers }), 413);
      expect(await sendChunked(fixture.platform, rawBody)).toBe(413);
    });

    it("returns 403 to a page of another site", async () => {
      for (const headers of [
        { "sec-fetch-site": "cross-site" },
        { "sec-fetch-site": "same-site" },
        { origin: "null" },
      ]) {
        const response = await fixture.platform.rest.get<ProblemJson>("/managed-services", { headers });
        expect(expectStatus(response, 403).json.code).toBe("cross_site_request");
      }
    });

    it("checks the credential before the body, and the body before the object", async () => {
      expectStatus(await fixture.platform.rest.as(undefined).post("/managed-services", { bad: 1 }), 401);
      expectStatus(await fixture.platform.rest.patch("/managed-services/none", { bad: 1 }), 400);
      expectStatus(await fixture.platform.rest.patch("/managed-services/none", { name: "new" }), 404);
    });

    it("needs no credential for its description and its health", async () => {
      const open = fixture.platform.rest.as(undefined);
      const description = await open.get<{ openapi: string; paths: object; webhooks: object }>("/openapi.json");
      expect(expectStatus(description, 200).json.openapi).toMatch(/^3\.1/);
      expect(Object.keys(description.json.webhooks)).toEqual([...eventTypes.keys()]);
      expect(Object.keys(description.json.paths)).toContain("/managed-services/{id}");
      // Versions are checked by a handler, not by the protos.
      const version = { enum: databaseEngines.flatMap(({ versions }) => versions) };
      const content = { "application/json": { schema: { properties: { version } } } };
      expect(description.json.paths).toMatchObject({ "/managed-services": { post: { requestBody: { content } } } });
      expectStatus(await open.get("/healthz"), 200);
    });

    it("describes each error on a separate page", async () => {
      const open = fixture.platform.rest.as(undefined);
      for (const key of Object.keys(CATALOG)) {
        const code = key.toLowerCase();
        expect(expectStatus(await open.get(`/docs/errors/${code}`), 200).text).toContain(code);
      }
      expectStatus(await open.get("/docs/errors/no_such_error"), 404);
    });

    it("accepts HEAD where it accepts GET", async () => {
      const response = await fixture.platform.rest.call("HEAD", "/catalog");
      expect(response).toMatchObject({ status: 200, text: "" });
    });
  });
}

/** Sends a body without a Content-Length; resolves to the status. */
function sendChunked(platform: Platform, body: string): Promise<number> {
  const headers = { authorization: platform.owner, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const options = { method: "POST", headers, ca: platform.ca };
    const outgoing = request(`${platform.rest.baseUrl}/managed-services`, options, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    outgoing.once("error", reject);
    for (let start = 0; start < body.length; start += 65_536) outgoing.write(body.slice(start, start + 65_536));
    outgoing.end();
  });
}

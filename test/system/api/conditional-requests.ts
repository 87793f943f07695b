import { describe, expect, it } from "vitest";
import type { ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { type ApiUnderTest, validService as valid } from "./api-under-test.ts";

/** Headers that decide whether a request is executed: once per key, only if unchanged, only at a revision. */
export function conditionCases(fixture: ApiUnderTest): void {
  describe("Idempotency-Key", () => {
    it("has one response and one service, however often it is sent", async () => {
      const options = { headers: { "idempotency-key": "create-once" } };
      const body = { ...valid, name: "once" };
      const both = await Promise.all([
        fixture.platform.rest.post<ServiceJson>("/managed-services", body, options),
        fixture.platform.rest.post<ServiceJson>("/managed-services", body, options),
      ]);
      const third = await fixture.platform.rest.post<ServiceJson>("/managed-services", { ...body }, options);
      expect(both.map(({ status }) => status)).toEqual([202, 202]);
      expect(new Set([...both, third].map(({ text }) => text)).size).toBe(1);
      expect(third.headers["idempotency-replayed"]).toBe("true");
      expect(both.filter(({ headers }) => headers["idempotency-replayed"] === undefined)).toHaveLength(1);

      const other = await fixture.platform.rest.post<ProblemJson>(
        "/managed-services",
        { ...body, storage_size_gb: 2 },
        options,
      );
      expect(expectStatus(other, 422).json.code).toBe("idempotency_key_reused");
      await fixture.services.delete(third.json.id);
      const late = await fixture.platform.rest.post<ServiceJson>("/managed-services", body, options);
      expect(late.text).toBe(third.text);
    });

    it("stores rejections too, and belongs to one path and one organization", async () => {
      const options = { headers: { "idempotency-key": "refused" } };
      const first = await fixture.platform.rest.post("/managed-services", { ...valid, name: "main" }, options);
      expectStatus(first, 409);
      expect(
        (await fixture.platform.rest.post("/managed-services", { ...valid, name: "main" }, options)).headers,
      ).toMatchObject({
        "idempotency-replayed": "true",
      });
      expectStatus(await fixture.platform.rest.post(fixture.path("/start"), undefined, options), 409);
      expectStatus(await fixture.outsider.post("/managed-services", { ...valid, name: "NO" }, options), 400);
    });

    it("is rejected when it is invalid", async () => {
      for (const key of ["x".repeat(256), "caf\u00e9"]) {
        const response = await fixture.platform.rest.post("/managed-services", valid, {
          headers: { "idempotency-key": key },
        });
        expectStatus(response, 400);
      }
    });
  });

  describe("If-Match", () => {
    it("accepts only the current generation", async () => {
      const { etag } = (await fixture.platform.rest.get(fixture.path())).headers;
      expect(etag).toMatch(/^"\d+"$/);
      const headers = { "if-match": etag ?? "" };
      const changed = await fixture.platform.rest.patch<ServiceJson>(
        fixture.path(),
        { tags: { team: "data" } },
        { headers },
      );
      expect(expectStatus(changed, 200).headers.etag).not.toBe(etag);
      expectStatus(await fixture.platform.rest.patch(fixture.path(), { tags: {} }, { headers }), 412);
      expectStatus(
        await fixture.platform.rest.patch(fixture.path(), { tags: { team: "data" } }, { headers: { "if-match": "*" } }),
        200,
      );
    });
  });

  describe("Holdfast-Revision", () => {
    it("comes with each mutation, and a read that sends it sees the write", async () => {
      const change = await fixture.platform.rest.patch(fixture.path(), { tags: { team: "data", turn: "1" } });
      const revision = String(change.headers["holdfast-revision"]);
      expect(revision).toMatch(/^\d+$/);
      const read = await fixture.platform.rest.get<ServiceJson>(fixture.path(), {
        headers: { "holdfast-revision": revision },
      });
      expect(read.json.tags["turn"]).toBe("1");
      expectStatus(await fixture.platform.rest.get(fixture.path(), { headers: { "holdfast-revision": "soon" } }), 400);
    });
  });
}

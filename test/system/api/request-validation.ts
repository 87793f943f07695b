import { describe, expect, it } from "vitest";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { type ApiUnderTest, validService as valid } from "./api-under-test.ts";

/** Bodies and queries: invalid ones are rejected, with every fault. */
export function inputCases(fixture: ApiUnderTest): void {
  describe("the shape of a body", () => {
    it.each([
      ["an unknown field", { ...valid, flavour: "x" }, ["/flavour"]],
      ["a camelCase twin", { ...valid, planName: "tier-1" }, ["/planName"]],
      ["a text for a number", { ...valid, storage_size_gb: "10" }, ["/storage_size_gb"]],
      ["a number for a text", { ...valid, name: 7 }, ["/name"]],
      ["a fraction for an integer", { ...valid, storage_size_gb: 1.5 }, ["/storage_size_gb"]],
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
    ])("rejects %s", async (_, body, pointers) => {
      expect(await fixture.faults(body)).toEqual(pointers);
    });

    it("reports all faults in one response", async () => {
      const body = { name: "Bad Name", database_type: 1, plan_name: "", storage_size_gb: -1, surprise: true };
      expect(await fixture.faults(body)).toEqual([
        "/database_type",
        "/name",
        "/plan_name",
        "/storage_size_gb",
        "/surprise",
      ]);
      const foreign = { plan_name: "tier-3", zone: "mars", storage_tier: "tape", parameters: { no_such: "1" } };
      expect(await fixture.faults({ ...valid, ...foreign, storage_size_gb: -1 })).toEqual([
        "/parameters/no_such",
        "/plan_name",
        "/storage_size_gb",
        "/storage_tier",
        "/zone",
      ]);
    });

    it("reports missing members", async () => {
      expect(await fixture.faults({})).toEqual(["/database_type", "/name", "/plan_name", "/storage_size_gb"]);
    });

    it.each([
      ["a duplicate key", '{"name":"a","name":"b"}'],
      ["broken JSON", '{"name":'],
      ["two values", "{} {}"],
      ["an array", "[]"],
      ["a bare text", '"name"'],
      ["bytes that are no UTF-8", Buffer.from([0x22, 0xff, 0x22])],
    ])("rejects %s", async (_, rawBody) => {
      const headers = { "content-type": "application/json" };
      const response = await fixture.platform.rest.call("POST", "/managed-services", { rawBody, headers });
      expectStatus(response, 400);
    });

    it("accepts an empty body as an empty object", async () => {
      const response = await fixture.platform.rest.call<ProblemJson>("POST", "/managed-services");
      expect(expectStatus(response, 400).json.errors).toHaveLength(4);
      expectStatus(
        await fixture.platform.rest.call("POST", fixture.path("/database-users/app_user/reveal-password")),
        200,
      );
    });

    it("rejects a change of a fixed member, or of one that is not supported yet", async () => {
      for (const field of ["database_type", "id", "status"]) {
        const response = await fixture.platform.rest.patch<ProblemJson>(fixture.path(), { [field]: "x" });
        expect(expectStatus(response, 400).json.errors).toMatchObject([{ field, pointer: `/${field}`, code: "fixed" }]);
      }
      expect(await fixture.faults({ deletion_protection: null }, "PATCH", fixture.path())).toEqual([
        "/deletion_protection",
      ]);
    });

    it("rejects an empty change", async () => {
      expectStatus(await fixture.platform.rest.patch(fixture.path(), {}), 400);
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
    ])("are rejected: %s", async (at, field) => {
      const response = await fixture.platform.rest.get<ProblemJson>(at);
      const [fault] = expectStatus(response, 400).json.errors;
      expect(fault).toMatchObject({ field, pointer: null });
    });
  });
}

import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { serve } from "@holdfast/common/call.ts";
import { CatalogService } from "@holdfast/proto/holdfast/v1/catalog_pb.ts";
import { Health } from "@holdfast/proto/grpc/health/v1/health_pb.ts";
import { beforeAll, describe, expect, test } from "vitest";
import { createInMemoryServices } from "@holdfast/testing/controller/in-memory-services.ts";
import { describeMethods } from "../method.ts";
import { createValidation } from "../validation.ts";
import { createOpenApi } from "./openapi.ts";
import { protoComments } from "./proto-comments.ts";
import { renderProtoComments } from "./write-proto-comments.ts";

/** Tests look into every part of the document. */
let document: ReturnType<typeof JSON.parse>;

beforeAll(() => {
  const { services } = createInMemoryServices();
  document = JSON.parse(
    JSON.stringify(createOpenApi(describeMethods(services), createValidation(), "https://localhost:1")),
  );
});

describe("/openapi.json", () => {
  test("is valid OpenAPI 3.1", async () => {
    const result = await new Validator().validate(document);
    expect(result.errors).toBeUndefined();
    expect(result.valid).toBe(true);
  });

  test("has every method with the limits of the protos", () => {
    const create = document.paths["/managed-services"].post;
    const { properties, required } = create.requestBody.content["application/json"].schema;
    expect(required).toEqual(["name", "database_type", "plan_name", "storage_size_gb"]);
    expect(properties).toMatchObject({
      name: { type: "string", pattern: "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$" },
      database_type: { type: "string", minLength: 1, maxLength: 40 },
      storage_size_gb: { type: "integer", minimum: 1, maximum: 16384 },
      allowed_cidrs: { type: "array", maxItems: 256, items: { type: "string", minLength: 1, maxLength: 64 } },
      tags: {
        type: "object",
        maxProperties: 50,
        propertyNames: { minLength: 1, maxLength: 63 },
        additionalProperties: { type: "string", maxLength: 255 },
      },
    });
    expect(create.parameters).toEqual([{ $ref: "#/components/parameters/Idempotency-Key" }]);
    expect(create.responses["202"].headers).toHaveProperty("Location");
    expect(create.responses["202"].links).toMatchObject({
      GetManagedService: { operationId: "getManagedService", parameters: { id: "$response.body#/id" } },
      ListDatabases: { operationId: "listDatabases", parameters: { service_id: "$response.body#/id" } },
    });
    expect(create.responses["202"].links).not.toHaveProperty("GetDatabaseUser");
    expect(
      document.paths["/managed-services/{service_id}/database-users"].post.requestBody.content["application/json"]
        .schema.properties.role.enum,
    ).toEqual(["admin", "readwrite", "readonly"]);
    const patch = document.paths["/managed-services/{id}"].patch;
    expect(patch.requestBody.content["application/json"].schema.properties.ttl_hours).toMatchObject({
      type: ["integer", "null"],
      maximum: 720,
    });
    expect(patch.requestBody.content["application/json"].schema.properties).not.toHaveProperty("update_mask");
  });

  test("responses have every field, null where the field is nullable", () => {
    const { ManagedService, Operation } = document.components.schemas;
    expect(ManagedService.required).toEqual(Object.keys(ManagedService.properties));
    expect(ManagedService.properties.status.enum).toEqual([
      "Pending",
      "Provisioning",
      "Running",
      "Stopped",
      "Error",
      "Upgrading",
    ]);
    expect(ManagedService.properties.operation.anyOf).toEqual([
      { $ref: "#/components/schemas/Operation" },
      { type: "null" },
    ]);
    expect(Operation.properties.finished_at).toMatchObject({ type: ["string", "null"], format: "date-time" });
  });

  test("has one name for each variable of a path, and the format of ids", () => {
    const forms = Object.keys(document.paths).map((path) => path.replaceAll(/\{[^}]*\}/g, "{}"));
    expect(new Set(forms).size).toBe(forms.length);
    const { parameters } = document.paths["/managed-services/{id}"].get;
    expect(parameters).toMatchObject([{ name: "id", in: "path", schema: { type: "string", format: "uuid" } }]);
    expect(document.components.schemas.ManagedService.properties.id).toMatchObject({ format: "uuid" });
    for (const [path, item] of Object.entries(document.paths) as [string, Record<string, { parameters?: object[] }>][])
      for (const { parameters: list = [] } of Object.values(item)) {
        const inPath = list.flatMap((each) =>
          "in" in each && each.in === "path" && "name" in each ? [each.name] : [],
        );
        expect(inPath).toEqual([...path.matchAll(/\{([^}]*)\}/g)].map(([, name]) => name));
      }
  });

  test("every method has its error responses and needs a credential", () => {
    expect(document.security).toEqual([{ basic: [] }, { bearer: [] }]);
    for (const item of Object.values(document.paths) as Record<string, { responses: object }>[]) {
      for (const { responses } of Object.values(item)) {
        for (const status of [400, 401, 403, 405, 503]) expect(responses).toHaveProperty(String(status));
      }
    }
  });
});

test("the comments are those of the protos", () => {
  expect(`${Object.keys(protoComments).length} comments`).not.toBe("0 comments");
  const rendered = renderProtoComments(join(import.meta.dirname, "../../.."));
  for (const [name, text] of Object.entries(protoComments))
    expect(rendered).toContain(`${JSON.stringify(name)}: ${JSON.stringify(text)}`);
  expect(rendered.split("\n").filter((line) => line.startsWith("  ")).length).toBe(Object.keys(protoComments).length);
});

test("a method without a scope does not start", () => {
  const health = { service: Health, handlers: {}, checks: {} };
  expect(() => describeMethods([health])).toThrow("grpc.health.v1.Health.Check declares no scope");
  const catalog = serve(CatalogService, { getCatalog: async () => ({}) });
  expect(() => describeMethods([{ ...catalog, handlers: {} }])).toThrow("has no implementation");
});

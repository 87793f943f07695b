import { CreateManagedServiceRequestSchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { CreateWebhookRequestSchema } from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { CreateAppRequestSchema } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { describe, expect, test } from "vitest";
import { startTestGateway } from "@holdfast/testing/api/test-gateway.ts";
import { createValidation } from "../validation.ts";
import { createSchemaRules, type SchemaRule } from "./schema-rules.ts";
import { createInputSchemas } from "./input-schema.ts";

const { url, events } = CreateWebhookRequestSchema.field;

function schemaWith(...forms: SchemaRule[]) {
  return createInputSchemas(createValidation(), createSchemaRules(forms)).object(
    CreateWebhookRequestSchema,
    CreateWebhookRequestSchema.fields,
  );
}

describe("a schema rule", () => {
  test("of the gateway is in its /openapi.json", async () => {
    const { version } = CreateManagedServiceRequestSchema.field;
    const gateway = await startTestGateway([], { schemaRules: [[version, { enum: ["17"] }]] });
    try {
      const { json } = await gateway.call("GET", "/openapi.json");
      const { schema } = json.paths["/managed-services"].post.requestBody.content["application/json"];
      expect(schema.properties.version).toMatchObject({ type: "string", enum: ["17"] });
    } finally {
      await gateway.close();
    }
  });

  test("adds its keywords to those of the field", () => {
    expect(schemaWith([url, { pattern: "^https:" }])).toMatchObject({
      properties: { url: { type: "string", maxLength: 2048, pattern: "^https:" } },
    });
  });

  test("for a list field applies to its items", () => {
    expect(schemaWith([events, { enum: ["service.running"] }])).toMatchObject({
      properties: { events: { type: ["array", "null"], items: { type: "string", enum: ["service.running"] } } },
    });
  });

  test("for a message keeps its properties and extends its required ones", () => {
    const form = { required: ["url", "events"], dependentRequired: { events: ["retry_policy"] } };
    expect(schemaWith([CreateWebhookRequestSchema, form])).toMatchObject({
      additionalProperties: false,
      required: ["url", "events"],
      dependentRequired: form.dependentRequired,
    });
  });

  test("for another message changes nothing", () => {
    expect(schemaWith([CreateAppRequestSchema.field.homeUrl, { pattern: "x" }])).toEqual(schemaWith());
  });

  test("is refused when its field has one already", () => {
    expect(() =>
      createSchemaRules([
        [url, {}],
        [url, {}],
      ]),
    ).toThrow("two entries are for the same field or message");
  });
});

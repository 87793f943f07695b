import type { DataField, EventDefinition } from "#kernel/outbox/event-definition.ts";

type JsonSchema = Readonly<Record<string, unknown>>;

const fieldSchemas: Readonly<Record<DataField["type"], JsonSchema>> = {
  string: { type: "string" },
  number: { type: "number" },
  boolean: { type: "boolean" },
  "string[]": { type: "array", items: { type: "string" } },
  "object[]": { type: "array", items: { type: "object" } },
  uuid: { type: "string", format: "uuid" },
  time: { type: "string", format: "date-time" },
};

function schemaOf({ type, nullable }: DataField): JsonSchema {
  const schema = fieldSchemas[type];
  return nullable === true ? { ...schema, type: [schema["type"], "null"] } : schema;
}

/** The webhooks of the OpenAPI 3.1 document, by event type. */
export function openApiWebhooks(types: ReadonlyMap<string, EventDefinition>): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries([...types].map(([type, definition]) => [type, { post: operationOf(type, definition) }]));
}

function operationOf(type: string, { when, data, example, planned }: EventDefinition): JsonSchema {
  const fields = Object.entries(data);
  const schema = {
    type: "object",
    required: ["id", "event_type", "timestamp", "data"],
    properties: {
      id: { type: "string", format: "uuid", description: "Id of the event, the same in each attempt." },
      event_type: { const: type },
      timestamp: { type: "string", format: "date-time" },
      data: {
        type: "object",
        required: fields.flatMap(([name, { optional }]) => (optional === true ? [] : [name])),
        properties: Object.fromEntries(
          fields.map(([name, field]) => [name, { ...schemaOf(field), description: field.meaning }]),
        ),
      },
    },
  };
  const body = { id: exampleId, event_type: type, timestamp: "2026-11-21T10:00:00.000Z", data: example };
  return {
    summary: `Sent when ${when}`,
    ...(planned === true && { description: "This version does not send it yet." }),
    parameters: signatures.map(({ name, description }) => ({
      name,
      in: "header",
      required: true,
      description,
      schema: { type: "string" },
    })),
    requestBody: { required: true, content: { "application/json": { schema, example: body } } },
    responses: {
      "2XX": { description: "The delivery succeeded." },
      default: { description: "Any other status, including a redirect, is a failure. The delivery is retried." },
    },
  };
}

const exampleId = "0198f2a4-9b3c-7e55-b1d2-6a0c4f8e2d31";

const signatures = [
  { name: "X-Platform-Signature", description: "`sha256=` and the HMAC-SHA256 of the body in hex, by the secret." },
  { name: "webhook-id", description: "Id of the event." },
  { name: "webhook-timestamp", description: "Seconds since 1970 of this attempt." },
  {
    name: "webhook-signature",
    description: "Signature of Standard Webhooks 1.0: `v1,` and the HMAC-SHA256 in base64.",
  },
];

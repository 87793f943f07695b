import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { bareItems, isNullable, rulesOf } from "../json/field-rules.ts";
import { described, type JsonSchema, orNull } from "./json-schema.ts";
import { protoComments } from "./proto-comments.ts";
import { singleSchema } from "./type-schema.ts";

/** Creates schemas of responses, in which every field is present, and adds them to `schemas` by message name. */
export function createOutputSchemas(schemas: Map<string, JsonSchema>): (message: DescMessage) => JsonSchema {
  function reference(message: DescMessage): JsonSchema {
    if (!schemas.has(message.name)) {
      schemas.set(message.name, {});
      schemas.set(message.name, messageSchema(message));
    }
    return { $ref: `#/components/schemas/${message.name}` };
  }

  function messageSchema(message: DescMessage): JsonSchema {
    const properties = message.fields.map((field) => [
      field.name,
      described(fieldSchema(field), protoComments[`${message.typeName}.${field.name}`]),
    ]);
    return described(
      {
        type: "object",
        required: message.fields.map((field) => field.name),
        properties: Object.fromEntries(properties),
      },
      protoComments[message.typeName],
    );
  }

  function fieldSchema(field: DescField): JsonSchema {
    if (rulesOf(field).rawJson) return {};
    if (field.fieldKind === "message" && rulesOf(field).bare) {
      const schema = fieldSchema(bareItems(field.message));
      return isNullable(field) ? orNull(schema) : schema;
    }
    const single = singleSchema(field, (of) => reference(of.message as DescMessage));
    if (field.fieldKind === "list") return { type: "array", items: single };
    if (field.fieldKind === "map") return { type: "object", additionalProperties: single };
    return isNullable(field) ? orNull(single) : single;
  }

  return reference;
}

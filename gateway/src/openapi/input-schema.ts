import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { bareItems, rulesOf } from "../json/field-rules.ts";
import type { Validation } from "../validation.ts";
import type { SchemaRules } from "./schema-rules.ts";
import { described, type JsonSchema, orNull } from "./json-schema.ts";
import { constraintsOf, countLimits, jsonObjectSchema, limited } from "./limits.ts";
import { protoComments } from "./proto-comments.ts";
import { singleSchema } from "./type-schema.ts";

/** JSON Schemas of requests, with every limit that the gateway checks. */
export interface InputSchemas {
  /** The schema of an object with these fields and no others. */
  object(message: DescMessage, fields: readonly DescField[]): JsonSchema;
  field(field: DescField): JsonSchema;
  /** Names of required fields. */
  required(message: DescMessage): ReadonlySet<string>;
}

export function createInputSchemas(validation: Validation, forms: SchemaRules): InputSchemas {
  function object(message: DescMessage, fields: readonly DescField[]): JsonSchema {
    const requiredNames = validation.required(message);
    const required = fields.map((field) => field.name).filter((name) => requiredNames.has(name));
    const schema = {
      type: "object",
      additionalProperties: false,
      properties: Object.fromEntries(fields.map((field) => [field.name, fieldSchema(field)])),
      ...(required.length > 0 ? { required } : {}),
    };
    return forms.add(schema, message);
  }

  function fieldSchema(field: DescField): JsonSchema {
    const schema = described(
      forms.add(valueSchema(field), field),
      protoComments[`${field.parent.typeName}.${field.name}`],
    );
    return rulesOf(field).clearable ? orNull(schema) : schema;
  }

  function valueSchema(field: DescField): JsonSchema {
    // Raw JSON inputs are descriptors and payloads, which are objects.
    if (rulesOf(field).rawJson || field.message?.typeName === "google.protobuf.Struct") return jsonObjectSchema;
    if (field.fieldKind === "message" && rulesOf(field).bare) return valueSchema(bareItems(field.message));
    const single = singleSchema(field, (of) => object(of.message as DescMessage, (of.message as DescMessage).fields));
    const { type } = constraintsOf(field);
    if (field.fieldKind === "list") {
      const items = type.case === "repeated" ? type.value.items : undefined;
      return { type: "array", items: limited(single, items, field.name, field.enum), ...countLimits(field) };
    }
    if (field.fieldKind === "map") {
      const { keys, values } = type.case === "map" ? type.value : {};
      const { type: _text, ...propertyNames } = limited({ type: "string" }, keys, field.name);
      // A setting by name: a string sets it, null resets it.
      const isSetting = field.message?.typeName === "google.protobuf.Value";
      const value = isSetting
        ? orNull(limited({ type: "string" }, undefined, field.name))
        : limited(single, values, field.name, field.enum);
      return {
        type: "object",
        propertyNames,
        additionalProperties: value,
        ...countLimits(field),
      };
    }
    return limited(single, constraintsOf(field), field.name, field.enum);
  }

  return { object, field: fieldSchema, required: validation.required };
}

import { type DescEnum, type DescField, getOption } from "@bufbuild/protobuf";
import { plainPattern } from "@holdfast/common/plain-text.ts";
import { type FieldRules, field as fieldConstraints } from "@holdfast/proto/buf/validate/validate_pb.ts";
import { nameField } from "../plain-names.ts";
import type { JsonSchema } from "./json-schema.ts";

/** The pattern of strings whose field has no pattern: U+0000 is never valid. */
const noNul = "^[^\\x00]*$";

/** The schema of arbitrary JSON values, whose strings do not contain U+0000. */
export const jsonValueSchema: JsonSchema = {
  anyOf: [
    { type: ["null", "boolean", "number"] },
    { type: "string", pattern: noNul },
    { type: "array", items: { $ref: "#/components/schemas/JsonValue" } },
    {
      type: "object",
      propertyNames: { pattern: noNul },
      additionalProperties: { $ref: "#/components/schemas/JsonValue" },
    },
  ],
};

/** The schema of JSON objects with arbitrary members. */
export const jsonObjectSchema: JsonSchema = {
  type: "object",
  propertyNames: { pattern: noNul },
  additionalProperties: { $ref: "#/components/schemas/JsonValue" },
};

/** The protovalidate rules of a field. */
export function constraintsOf(field: DescField): FieldRules {
  return getOption(field, fieldConstraints);
}

/** Adds validation rules to the schema of one value; throws for a rule without an equivalent. */
export function limited(
  schema: JsonSchema,
  rules: FieldRules | undefined,
  name: string,
  description?: DescEnum,
): JsonSchema {
  const type = rules?.type;
  if (type === undefined || type.case === undefined)
    return schema.type === "string" ? withText(schema, {}, name) : schema;
  switch (type.case) {
    case "string":
      return withText(
        schema,
        setRules(type.value, ["minLen", "maxLen", "len", "pattern", "in", "wellKnown"], name),
        name,
      );
    case "int32":
    case "int64":
    case "uint32":
    case "uint64":
    case "double":
    case "float":
      return {
        ...schema,
        // A number in JSON is always finite.
        ...numberLimits(setRules(type.value, ["gte", "lte", "gt", "lt", "greaterThan", "lessThan", "finite"], name)),
      };
    case "enum": {
      const { in: allowed } = setRules(type.value, ["in", "definedOnly"], name) as { in?: readonly number[] };
      if (allowed === undefined || allowed.length === 0) return schema;
      return { ...schema, enum: allowed.map((number) => description?.value[number]?.jsonName) };
    }
    default:
      throw new Error(`${name}: /openapi.json has no equivalent of rules of kind ${type.case}`);
  }
}

function withText(schema: JsonSchema, rules: Readonly<Record<string, unknown>>, name: string): JsonSchema {
  if (schema.enum !== undefined || schema.format !== undefined || schema.contentEncoding !== undefined) return schema;
  const { in: values, minLen, maxLen, len, pattern, wellKnown } = rules;
  if ((wellKnown as { case?: string } | undefined)?.case === "uuid") return { type: "string", format: "uuid" };
  if (Array.isArray(values) && values.length > 0) return { ...schema, enum: values };
  return {
    ...schema,
    ...(minLen === undefined && len === undefined ? {} : { minLength: Number(minLen ?? len) }),
    ...(maxLen === undefined && len === undefined ? {} : { maxLength: Number(maxLen ?? len) }),
    pattern: pattern ?? (nameField.test(name) ? plainPattern : noNul),
  };
}

function numberLimits(rules: Readonly<Record<string, unknown>>): JsonSchema {
  const greater = rules.greaterThan as { case?: string; value?: unknown } | undefined;
  const less = rules.lessThan as { case?: string; value?: unknown } | undefined;
  return {
    ...(greater?.case === "gte" ? { minimum: Number(greater.value) } : {}),
    ...(greater?.case === "gt" ? { exclusiveMinimum: Number(greater.value) } : {}),
    ...(less?.case === "lte" ? { maximum: Number(less.value) } : {}),
    ...(less?.case === "lt" ? { exclusiveMaximum: Number(less.value) } : {}),
  };
}

/** The minimum and maximum number of entries of a list or map. */
export function countLimits(field: DescField): JsonSchema {
  const { type } = constraintsOf(field);
  if (type.case === "repeated") {
    const { minItems, maxItems, unique } = setRules(
      type.value,
      ["minItems", "maxItems", "unique", "items"],
      field.name,
    );
    return {
      ...(minItems === undefined ? {} : { minItems: Number(minItems) }),
      ...(maxItems === undefined ? {} : { maxItems: Number(maxItems) }),
      ...(unique === true ? { uniqueItems: true } : {}),
    };
  }
  if (type.case !== "map") return {};
  const { minPairs, maxPairs } = setRules(type.value, ["minPairs", "maxPairs", "keys", "values"], field.name);
  return {
    ...(minPairs === undefined ? {} : { minProperties: Number(minPairs) }),
    ...(maxPairs === undefined ? {} : { maxProperties: Number(maxPairs) }),
  };
}

/** The rules that are set. Throws for a rule that is not supported, so that none is missing in the document. */
function setRules(rules: object, supported: readonly string[], name: string): Readonly<Record<string, unknown>> {
  const set = Object.entries(rules).filter(([key, value]) => {
    if (key.startsWith("$") || value === undefined) return false;
    if (Array.isArray(value)) return value.length > 0;
    return !(typeof value === "object" && value !== null && "case" in value && value.case === undefined);
  });
  for (const [key] of set) {
    if (!supported.includes(key)) throw new Error(`${name}: /openapi.json has no equivalent of the rule ${key}`);
  }
  return Object.fromEntries(set);
}

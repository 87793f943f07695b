import { type DescEnum, type DescField, ScalarType } from "@bufbuild/protobuf";
import { integerRange } from "../json/decode-scalar.ts";
import type { JsonSchema } from "./json-schema.ts";
import { isUuid } from "./uuid-fields.ts";

/** The schema of a scalar type. */
function scalarSchema(scalar: ScalarType): JsonSchema {
  const range = integerRange(scalar);
  if (range !== undefined) return { type: "integer", minimum: range[0], maximum: range[1] };
  switch (scalar) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    default:
      return { type: "number" };
  }
}

function enumSchema(description: DescEnum): JsonSchema {
  return {
    type: "string",
    enum: description.values.filter((value) => value.number !== 0).map((value) => value.jsonName),
  };
}

/** The schema of a google.protobuf type, whose JSON is not its fields; undefined for other messages. */
function wellKnownSchema(typeName: string): JsonSchema | undefined {
  switch (typeName) {
    case "google.protobuf.Timestamp":
      return { type: "string", format: "date-time" };
    case "google.protobuf.Empty":
      return { type: "object", maxProperties: 0 };
    case "google.protobuf.Struct":
      return { type: "object" };
    case "google.protobuf.ListValue":
      return { type: "array", items: {} };
    case "google.protobuf.Value":
      return {};
    default:
      return undefined;
  }
}

/** The schema of a single value: an entry of a list, a value of a map, or the field itself. */
export function singleSchema(field: DescField, ofMessage: (field: DescField) => JsonSchema): JsonSchema {
  if (field.message !== undefined) return wellKnownSchema(field.message.typeName) ?? ofMessage(field);
  if (isUuid(field)) return { type: "string", format: "uuid" };
  return field.enum === undefined ? scalarSchema(field.scalar) : enumSchema(field.enum);
}

import { type DescField, ScalarType } from "@bufbuild/protobuf";
import { lookUp } from "@holdfast/common/look-up.ts";
import { decodeEnum, decodeScalar, faultOfText } from "./json/decode-scalar.ts";
import type { Faults } from "./json/faults.ts";
import type { JsonNode } from "./json/json-node.ts";
import { parseTimestamp, timestampFault } from "./json/timestamp.ts";
import { isUuid } from "./openapi/uuid-fields.ts";

/** Sets fields of a request message from the query of the URL; unknown parameters are faults. */
export type DecodeQuery = (query: string, into: Record<string, unknown>, faults: Faults) => void;

type DecodeParameter = (text: string, name: string, faults: Faults) => unknown;

/** Compiles a strict decoder of queries: unknown, repeated and mistyped parameters are faults. */
export function compileQuery(fields: readonly DescField[]): DecodeQuery {
  const parameters = new Map(
    fields.map((field) => [field.name, { field, decode: isUuid(field) ? decodeUuid : compileParameter(field) }]),
  );
  return (query, into, faults) => {
    if (query === "") return;
    const seen = new Set<string>();
    for (const pair of query.split("&")) {
      if (pair === "") continue;
      const equals = pair.indexOf("=");
      const name = decodePart(equals < 0 ? pair : pair.slice(0, equals));
      const text = equals < 0 ? "" : decodePart(pair.slice(equals + 1));
      const parameter = name === undefined ? undefined : parameters.get(name);
      if (name === undefined || parameter === undefined) {
        faults.parameter(name ?? pair, "unknown_parameter", "is not a parameter of this request");
        continue;
      }
      const isList = parameter.field.fieldKind === "list";
      if (seen.has(name) && !isList) {
        faults.parameter(name, "repeated_parameter", "is there more than once");
        continue;
      }
      seen.add(name);
      if (text === undefined) {
        faults.parameter(name, "invalid_text", "is not percent-encoded UTF-8");
        continue;
      }
      const value = parameter.decode(text, name, faults);
      if (value === undefined) continue;
      const { localName } = parameter.field;
      if (isList) (lookUp(into, localName) as unknown[]).push(value);
      else into[localName] = value;
    }
  };
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Decodes the UUID of a filter. In a path, an invalid id is not a fault: no object has it, so the response is 404. */
function decodeUuid(text: string, name: string, faults: Faults): string | undefined {
  if (uuid.test(text)) return text;
  faults.parameter(name, "string_uuid", "must be a valid UUID");
  return undefined;
}

/** Compiles the decoder of a path variable or query parameter. */
export function compileParameter(field: DescField): DecodeParameter {
  if (field.message !== undefined) {
    if (field.message.typeName !== "google.protobuf.Timestamp") throw new Error(`${field} cannot be a parameter`);
    return (text, name, faults) => {
      const timestamp = parseTimestamp(text);
      if (timestamp === undefined) faults.parameter(name, "invalid_time", timestampFault(text));
      return timestamp;
    };
  }
  if (field.fieldKind === "map") throw new Error(`${field} cannot be a parameter`);
  if (field.enum === undefined && field.scalar === ScalarType.STRING) {
    return (text, name, faults) => {
      const detail = faultOfText(text);
      if (detail === undefined) return text;
      faults.parameter(name, "invalid_text", detail);
      return undefined;
    };
  }
  const decode = field.enum === undefined ? decodeScalar(field.scalar) : decodeEnum(field.enum);
  const isText = field.enum !== undefined || field.scalar === ScalarType.BYTES;
  return (text, name, faults) =>
    decode(
      isText ? text : nodeOf(text),
      undefined,
      { ...faults, at: (_path, code, detail) => faults.parameter(name, code, detail) },
      text,
    );
}

/** The boolean or number that the text represents, otherwise the text, which then has the wrong type. */
function nodeOf(text: string): JsonNode {
  if (text === "true") return true;
  if (text === "false") return false;
  return /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text) ? { kind: "number", value: Number(text), text } : text;
}

function decodePart(part: string): string | undefined {
  try {
    return decodeURIComponent(part.replaceAll("+", " "));
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

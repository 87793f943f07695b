import { type JsonNode, type JsonObject, nameOfKind } from "./json-node.ts";
import { JsonSyntaxError, parseJson } from "./parse-json.ts";

/** A parsed body. */
export interface ReadJson {
  readonly text: string;
  readonly value: JsonObject;
}

/** The fault of a body that is not a JSON object. */
export interface BodyFault {
  readonly code: string;
  readonly detail: string;
}

/** Parses one JSON object in UTF-8 with at most `valuesMax` values. */
export function readJson(bytes: Uint8Array, valuesMax: number): ReadJson | BodyFault {
  let text: string;
  let value: JsonNode;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    value = parseJson(text, valuesMax);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return { code: "invalid_json", detail: error.message };
    if (error instanceof TypeError) return { code: "invalid_utf8", detail: "must be UTF-8" };
    throw error;
  }
  if (value === null || typeof value !== "object" || value.kind !== "object")
    return { code: "wrong_type", detail: `must be an object, not ${nameOfKind(value)}` };
  return { text, value };
}

import { type JsonNode, type JsonObject, nameOfKind } from "./json-node.ts";
import { JsonSyntaxError, parseJson } from "./parse-json.ts";

/** A body as read: its text and the value in it. */
export interface ReadJson {
  readonly text: string;
  readonly value: JsonObject;
}

/** What is wrong with a body as a whole. */
export interface BodyFault {
  readonly code: string;
  readonly detail: string;
}

/** Reads the bytes of one JSON object in UTF-8, with at most so many values in it. */
export function readJson(bytes: Uint8Array, most: number): ReadJson | BodyFault {
  let text: string;
  let value: JsonNode;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    value = parseJson(text, most);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return { code: "invalid_json", detail: error.message };
    if (error instanceof TypeError) return { code: "invalid_utf8", detail: "must be UTF-8" };
    throw error;
  }
  if (value === null || typeof value !== "object" || value.kind !== "object")
    return { code: "wrong_type", detail: `must be an object, not ${nameOfKind(value)}` };
  return { text, value };
}

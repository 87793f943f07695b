import { createHash } from "node:crypto";

/** A JSON value as parsed, with the details that JSON.parse drops: repeated keys and the exact text of members. */
export type JsonNode = null | boolean | string | JsonNumber | JsonArray | JsonObject;

export interface JsonNumber {
  readonly kind: "number";
  readonly value: number;
  /** The digits as they were written. */
  readonly text: string;
}

export interface JsonArray {
  readonly kind: "array";
  readonly items: readonly JsonNode[];
}

export interface JsonObject {
  readonly kind: "object";
  readonly members: ReadonlyMap<string, JsonMember>;
  /** Keys that occur more than once. */
  readonly repeated: readonly string[];
}

export interface JsonMember {
  readonly value: JsonNode;
  /** Where the value's text begins and ends in the source. */
  readonly start: number;
  readonly end: number;
  /** The value's own text in UTF-8, where it is there instead of the value. */
  readonly raw?: Uint8Array;
}

export const emptyObject: JsonObject = { kind: "object", members: new Map(), repeated: [] };

/** The name of a value's type in the text of a fault. */
export function nameOfKind(node: JsonNode): string {
  if (node === null) return "null";
  if (typeof node === "string") return "a string";
  if (typeof node === "boolean") return "a boolean";
  return node.kind === "object" ? "an object" : node.kind === "array" ? "an array" : "a number";
}

/** The plain JavaScript value. */
export function plainValue(node: JsonNode): unknown {
  if (node === null || typeof node !== "object") return node;
  if (node.kind === "number") return node.value;
  if (node.kind === "array") return node.items.map(plainValue);
  return Object.fromEntries([...node.members].map(([key, member]) => [key, plainValue(member.value)]));
}

/** One text for all spellings of a value: keys in order, no white space, digits as written. */
export function canonicalText(node: JsonNode): string {
  if (node === null || typeof node !== "object") return JSON.stringify(node);
  if (node.kind === "number") return node.text;
  if (node.kind === "array") return `[${node.items.map(canonicalText).join(",")}]`;
  const members = [...node.members].sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonicalText(member.value)}`).join(",")}}`;
}

/** SHA-256 of a value's canonical text, equal for all spellings of the value, in hex. */
export function hashOf(node: JsonNode): string {
  return createHash("sha256").update(canonicalText(node)).digest("hex");
}

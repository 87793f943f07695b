import { createHash } from "node:crypto";

/** A parsed JSON value with repeated keys and the source text of members, which JSON.parse drops. */
export type JsonNode = null | boolean | string | JsonNumber | JsonArray | JsonObject;

export interface JsonNumber {
  readonly kind: "number";
  readonly value: number;
  /** The number in the notation of the source, such as `1.50e1`. */
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
  /** Offsets of the value's text in the source. */
  readonly start: number;
  readonly end: number;
  /** The text of a raw value in UTF-8, set by a worker thread instead of `value`. */
  readonly raw?: Uint8Array;
}

export const emptyObject: JsonObject = { kind: "object", members: new Map(), repeated: [] };

/** The type of a value for the text of a fault, such as `a string`. */
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

/** The canonical text of a value: sorted keys, no white space, numbers in the notation of the source. */
export function canonicalText(node: JsonNode): string {
  if (node === null || typeof node !== "object") return JSON.stringify(node);
  if (node.kind === "number") return node.text;
  if (node.kind === "array") return `[${node.items.map(canonicalText).join(",")}]`;
  const members = [...node.members].sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonicalText(member.value)}`).join(",")}}`;
}

/** SHA-256 of the canonical text, in hex; white space, order of keys and escapes do not change it. */
export function hashOf(node: JsonNode): string {
  return createHash("sha256").update(canonicalText(node)).digest("hex");
}

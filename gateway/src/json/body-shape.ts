import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { decodeWellKnown } from "./decode-well-known.ts";
import { rulesOf } from "./field-rules.ts";
import type { JsonMember, JsonNode, JsonObject } from "./json-node.ts";

/**
 * The parts of a body that a method reads, so that a worker thread returns only these: `raw` is the text of a value,
 * `leaf` a value without members or entries, `complete` the entire value, and an object has the shapes of its members.
 * The entries of a list have the shape of the list.
 */
export type BodyShape = "raw" | "leaf" | "complete" | { readonly [member: string]: BodyShape };

/** The shape of bodies with these fields; undefined if no field is raw JSON. */
export function bodyShapeOf(fields: readonly DescField[]): BodyShape | undefined {
  const shape = shapeOfFields(fields, []);
  return hasRaw(shape) ? shape : undefined;
}

function shapeOfFields(fields: readonly DescField[], within: readonly DescMessage[]): BodyShape {
  return Object.fromEntries(fields.map((field) => [field.name, shapeOfField(field, within)]));
}

function shapeOfField(field: DescField, within: readonly DescMessage[]): BodyShape {
  const { rawJson, bare } = rulesOf(field);
  if (rawJson) return "raw";
  const { message } = field;
  if (field.fieldKind === "map") return "complete";
  if (message === undefined) return "leaf";
  if (bare || within.includes(message) || decodeWellKnown(message) !== undefined) return "complete";
  return shapeOfFields(message.fields, [...within, message]);
}

function hasRaw(shape: BodyShape): boolean {
  return typeof shape === "string" ? shape === "raw" : Object.values(shape).some(hasRaw);
}

/** Reduces an object to the members of the shape, so that threads exchange little data; raw values become bytes. */
export function prune({ members, ...object }: JsonObject, shape: BodyShape, source: string): JsonObject {
  const pruned = new Map<string, JsonMember>();
  for (const [key, member] of members) {
    const of = typeof shape === "object" && Object.hasOwn(shape, key) ? shape[key] : undefined;
    pruned.set(key, pruneMember(member, shape === "complete" ? shape : of, source));
  }
  return { ...object, members: pruned };
}

/** Reduces a member. Of an unknown member only the name remains, which is reported as a fault. */
function pruneMember({ value, start, end }: JsonMember, shape: BodyShape | undefined, source: string): JsonMember {
  if (shape === undefined) return { value: null, start, end };
  if (shape !== "raw") return { value: pruneValue(value, shape, source), start, end };
  // A copy in its own memory, which is transferred to the other thread.
  return { value: null, start, end, raw: new Uint8Array(new TextEncoder().encode(source.slice(start, end))) };
}

function pruneValue(node: JsonNode, shape: BodyShape, source: string): JsonNode {
  if (node === null || typeof node !== "object" || node.kind === "number" || shape === "complete") return node;
  if (node.kind === "object") return prune(node, shape, source);
  return { kind: "array", items: node.items.map((item) => pruneEntry(item, shape, source)) };
}

function pruneEntry(node: JsonNode, shape: BodyShape, source: string): JsonNode {
  const isList = node !== null && typeof node === "object" && node.kind === "array";
  return isList ? { kind: "array", items: [] } : pruneValue(node, shape, source);
}

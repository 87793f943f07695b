import type { BodyShape } from "./body-shape.ts";
import type { JsonMember, JsonNode, JsonObject } from "./json-node.ts";

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

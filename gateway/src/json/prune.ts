import type { BodyShape } from "./body-shape.ts";
import type { JsonMember, JsonNode, JsonObject } from "./json-node.ts";

/**
 * The object with only the members that its method reads, to be sent between threads: raw values as bytes of their own.
 */
export function prune({ members, ...object }: JsonObject, shape: BodyShape, source: string): JsonObject {
  const kept = new Map<string, JsonMember>();
  for (const [key, member] of members) {
    const of = typeof shape === "object" && Object.hasOwn(shape, key) ? shape[key] : undefined;
    kept.set(key, pruneMember(member, shape === "whole" ? shape : of, source));
  }
  return { ...object, members: kept };
}

/** A member that no field has is known by its name. */
function pruneMember({ value, start, end }: JsonMember, shape: BodyShape | undefined, source: string): JsonMember {
  if (shape === undefined) return { value: null, start, end };
  if (shape !== "raw") return { value: pruneValue(value, shape, source), start, end };
  // A copy, in memory that is transferred with the message.
  return { value: null, start, end, raw: new Uint8Array(new TextEncoder().encode(source.slice(start, end))) };
}

function pruneValue(node: JsonNode, shape: BodyShape, source: string): JsonNode {
  if (node === null || typeof node !== "object" || node.kind === "number" || shape === "whole") return node;
  if (node.kind === "object") return prune(node, shape, source);
  return { kind: "array", items: node.items.map((item) => pruneEntry(item, shape, source)) };
}

function pruneEntry(node: JsonNode, shape: BodyShape, source: string): JsonNode {
  const isList = node !== null && typeof node === "object" && node.kind === "array";
  return isList ? { kind: "array", items: [] } : pruneValue(node, shape, source);
}

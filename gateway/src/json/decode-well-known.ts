import { create, type DescMessage, fromJson, type JsonObject as PlainObject, type JsonValue } from "@bufbuild/protobuf";
import { EmptySchema, ListValueSchema, NullValue, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Decode, decodeText, faultOfText, wrongType } from "./decode-scalar.ts";
import type { Faults, Place } from "./faults.ts";
import { type JsonNode, plainValue } from "./json-node.ts";
import { parseTimestamp } from "./timestamp.ts";

/** Decoders of the types whose JSON is not their fields; throws for types that this API does not use. */
export function decodeWellKnown(message: DescMessage): Decode | undefined {
  if (!message.typeName.startsWith("google.protobuf.")) return undefined;
  switch (message.typeName) {
    case "google.protobuf.Timestamp":
      return decodeTimestamp;
    case "google.protobuf.Empty":
      return () => create(EmptySchema);
    case "google.protobuf.Value":
      return free((value) => fromJson(ValueSchema, value));
    case "google.protobuf.Struct":
      return (node, place, faults, source) =>
        isKind(node, "object")
          ? free((value) => value as PlainObject)(node, place, faults, source)
          : wrongType(node, "an object", place, faults);
    case "google.protobuf.ListValue":
      return (node, place, faults, source) =>
        isKind(node, "array")
          ? free((value) => fromJson(ListValueSchema, value))(node, place, faults, source)
          : wrongType(node, "an array", place, faults);
    default:
      throw new Error(`${message.typeName} has no JSON in this API`);
  }
}

function isKind(node: JsonNode, kind: "object" | "array"): boolean {
  return node !== null && typeof node === "object" && node.kind === kind;
}

function decodeTimestamp(node: JsonNode, place: Place | undefined, faults: Faults): unknown {
  if (typeof node !== "string") return wrongType(node, "an RFC 3339 time", place, faults);
  const timestamp = parseTimestamp(node);
  if (timestamp === undefined)
    faults.at(place, "invalid_time", "must be an RFC 3339 time such as 2030-01-31T12:00:00Z");
  return timestamp;
}

/** Settings by name are a map of Value: a text sets, null resets, nothing else is a setting. */
export function decodeTextOrNull(node: JsonNode, place: Place | undefined, faults: Faults): unknown {
  if (node === null) return create(ValueSchema, { kind: { case: "nullValue", value: NullValue.NULL_VALUE } });
  const value = decodeText(node, place, faults);
  return value === undefined ? undefined : create(ValueSchema, { kind: { case: "stringValue", value } });
}

/** JSON without a schema: any depth, but still no repeated keys and no broken text. */
function free(make: (value: JsonValue) => unknown): Decode {
  return (node, place, faults) => {
    const before = faults.list.length;
    inspect(node, place, faults);
    return faults.list.length > before ? undefined : make(plainValue(node) as JsonValue);
  };
}

function inspect(node: JsonNode, place: Place | undefined, faults: Faults): void {
  if (typeof node === "string") {
    const detail = faultOfText(node);
    if (detail !== undefined) faults.at(place, "invalid_text", detail);
  }
  if (node === null || typeof node !== "object") return;
  if (node.kind === "number" && !Number.isFinite(node.value))
    faults.at(place, "out_of_range", "is too large for a number");
  if (node.kind === "array")
    for (const [key, item] of node.items.entries()) inspect(item, { parent: place, key }, faults);
  if (node.kind !== "object") return;
  for (const key of node.repeated) faults.at({ parent: place, key }, "duplicate_key", "is there more than once");
  for (const [key, member] of node.members) {
    const detail = faultOfText(key);
    if (detail === undefined) inspect(member.value, { parent: place, key }, faults);
    else faults.at({ parent: place, key }, "invalid_text", detail);
  }
}

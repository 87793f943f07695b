import { create, type DescMessage, fromJson, type JsonObject as PlainObject, type JsonValue } from "@bufbuild/protobuf";
import { EmptySchema, ListValueSchema, NullValue, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Decode, decodeText, faultOfText, wrongType } from "./decode-scalar.ts";
import type { Faults, ValuePath } from "./faults.ts";
import { isExact, roundedDetail } from "./exact-number.ts";
import { type JsonNode, plainValue } from "./json-node.ts";
import { parseTimestamp, timestampFault } from "./timestamp.ts";

/** The decoder of a google.protobuf type, whose JSON is not its fields; undefined for other messages. */
export function decodeWellKnown(message: DescMessage): Decode | undefined {
  if (!message.typeName.startsWith("google.protobuf.")) return undefined;
  switch (message.typeName) {
    case "google.protobuf.Timestamp":
      return decodeTimestamp;
    case "google.protobuf.Empty":
      return () => create(EmptySchema);
    case "google.protobuf.Value":
      return schemaless((value) => fromJson(ValueSchema, value));
    case "google.protobuf.Struct":
      return (node, path, faults, source) =>
        isKind(node, "object")
          ? schemaless((value) => value as PlainObject)(node, path, faults, source)
          : wrongType(node, "an object", path, faults);
    case "google.protobuf.ListValue":
      return (node, path, faults, source) =>
        isKind(node, "array")
          ? schemaless((value) => fromJson(ListValueSchema, value))(node, path, faults, source)
          : wrongType(node, "an array", path, faults);
    default:
      throw new Error(`${message.typeName} has no JSON in this API`);
  }
}

function isKind(node: JsonNode, kind: "object" | "array"): boolean {
  return node !== null && typeof node === "object" && node.kind === kind;
}

function decodeTimestamp(node: JsonNode, path: ValuePath | undefined, faults: Faults): unknown {
  if (typeof node !== "string") return wrongType(node, "an RFC 3339 time", path, faults);
  const timestamp = parseTimestamp(node);
  if (timestamp === undefined) faults.at(path, "invalid_time", timestampFault(node));
  return timestamp;
}

/** Decodes a setting in a map of Value: a string sets it and null resets it. */
export function decodeTextOrNull(node: JsonNode, path: ValuePath | undefined, faults: Faults): unknown {
  if (node === null) return create(ValueSchema, { kind: { case: "nullValue", value: NullValue.NULL_VALUE } });
  const value = decodeText(node, path, faults);
  return value === undefined ? undefined : create(ValueSchema, { kind: { case: "stringValue", value } });
}

/** JSON without a schema. Repeated keys and invalid text are faults at any depth. */
function schemaless(build: (value: JsonValue) => unknown): Decode {
  return (node, path, faults) => {
    const before = faults.list.length;
    inspect(node, path, faults);
    return faults.list.length > before ? undefined : build(plainValue(node) as JsonValue);
  };
}

function inspect(node: JsonNode, path: ValuePath | undefined, faults: Faults): void {
  if (typeof node === "string") {
    const detail = faultOfText(node);
    if (detail !== undefined) faults.at(path, "invalid_text", detail);
  }
  if (node === null || typeof node !== "object") return;
  if (node.kind === "number" && !isExact(node)) faults.at(path, "out_of_range", roundedDetail(node));
  if (node.kind === "array")
    for (const [key, item] of node.items.entries()) inspect(item, { parent: path, key }, faults);
  if (node.kind !== "object") return;
  for (const key of node.repeated) faults.at({ parent: path, key }, "duplicate_key", "is there more than once");
  for (const [key, member] of node.members) {
    const detail = faultOfText(key);
    if (detail === undefined) inspect(member.value, { parent: path, key }, faults);
    else faults.at({ parent: path, key }, "invalid_text", detail);
  }
}

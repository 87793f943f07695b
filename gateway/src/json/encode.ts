import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type MessageInitShape,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { ListValueSchema, type TimestampSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { lookUp } from "@holdfast/common/look-up.ts";
import { bareItems, rulesOf } from "./field-rules.ts";
import { formatTimestamp } from "./timestamp.ts";

/** Encodes a message, or an initializer of one, as JSON text. */
export type Encode = (message: object) => string;

type EncodeValue = (value: never) => string;
type Members = Readonly<Record<string, never>>;

/** Compiles encoders, which write every field in the order of the proto, and null for a field without a value. */
export function createEncoders(): (message: DescMessage) => Encode {
  const compiled = new Map<string, Encode>();

  function encoderOf(message: DescMessage): Encode {
    const cached = compiled.get(message.typeName);
    if (cached !== undefined) return cached;
    // A message may contain itself, so it is registered before its fields are compiled.
    let encode: Encode = () => "{}";
    compiled.set(message.typeName, (value) => encode(value));
    encode = encodeWellKnown(message) ?? compileMessage(message);
    compiled.set(message.typeName, encode);
    return encode;
  }

  function compileMessage(message: DescMessage): Encode {
    if (message.oneofs.some((oneof) => oneof.fields.some((field) => !field.proto.proto3Optional))) {
      throw new Error(`${message.typeName} has a oneof, which this API's JSON does not have`);
    }
    const fields = message.fields.map((field, index) => ({
      name: field.localName,
      head: `${index === 0 ? "{" : ","}"${field.name}":`,
      encode: compileField(field),
      absent: absentText(field),
    }));
    if (fields.length === 0) return () => "{}";
    return (value) => {
      let text = "";
      for (const field of fields) {
        const member = lookUp(value as Members, field.name);
        text += field.head;
        text += member === undefined ? field.absent : field.encode(member);
      }
      return `${text}}`;
    };
  }

  function compileField(field: DescField): EncodeValue {
    const rules = rulesOf(field);
    if (rules.rawJson)
      return (value: Uint8Array) => (value.length === 0 ? "null" : Buffer.from(value).toString("utf8"));
    if (field.fieldKind === "list") {
      const item = compileSingle(field);
      return (value: never[]) => (value.length === 0 ? "[]" : `[${value.map((entry) => item(entry)).join(",")}]`);
    }
    if (field.fieldKind === "map") {
      const item = compileSingle(field);
      return (value: Members) =>
        `{${Object.keys(value)
          .map((key) => `${quote(key)}:${item(lookUp(value, key) as never)}`)
          .join(",")}}`;
    }
    if (field.fieldKind === "message" && rules.bare) {
      const items = bareItems(field.message);
      const encode = compileField(items);
      return (value: Members) => encode((lookUp(value, items.localName) ?? []) as never);
    }
    return compileSingle(field);
  }

  function compileSingle(field: DescField): EncodeValue {
    if (field.message !== undefined) return encoderOf(field.message);
    if (field.enum !== undefined) return encodeEnum(field.enum);
    return encodeScalar(field.scalar);
  }

  return encoderOf;
}

/** The JSON of a field that the handler left out. */
function absentText(field: DescField): string {
  if (field.fieldKind === "list") return "[]";
  if (field.fieldKind === "map") return "{}";
  if (field.fieldKind !== "scalar" || field.proto.proto3Optional) return "null";
  return field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES
    ? '""'
    : field.scalar === ScalarType.BOOL
      ? "false"
      : "0";
}

function encodeEnum(description: DescEnum): EncodeValue {
  // The zero value means "not set" and has no spelling.
  const texts = description.values.map((value) => (value.number === 0 ? undefined : JSON.stringify(value.jsonName)));
  const byNumber = new Map(description.values.map((value, index) => [value.number, texts[index] ?? "null"]));
  return (value: number) => byNumber.get(value) ?? "null";
}

function encodeScalar(scalar: ScalarType): EncodeValue {
  switch (scalar) {
    case ScalarType.STRING:
      return quote;
    case ScalarType.BOOL:
      return (value: boolean) => (value ? "true" : "false");
    case ScalarType.BYTES:
      return (value: Uint8Array) => `"${Buffer.from(value).toString("base64")}"`;
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return (value: number) => (Number.isFinite(value) ? String(value) : "null");
    default:
      return exactInteger;
  }
}

/** Integers are JSON numbers. Throws for an integer that a double cannot represent exactly. */
function exactInteger(value: number | bigint | string): string {
  if (!Number.isSafeInteger(Number(value))) throw new Error("an integer of the response is beyond 2^53-1");
  return String(value);
}

// oxlint-disable-next-line no-control-regex -- these are what JSON must escape
const needsEscape = /["\\\u0000-\u001f\ud800-\udfff]/;

/** A JSON string. JSON.stringify is called only when something must be escaped. */
function quote(text: string): string {
  return needsEscape.test(text) ? JSON.stringify(text) : `"${text}"`;
}

/** The encoder of a google.protobuf type, whose JSON is not its fields; undefined for other messages. */
function encodeWellKnown(message: DescMessage): ((value: object) => string) | undefined {
  if (!message.typeName.startsWith("google.protobuf.")) return undefined;
  switch (message.typeName) {
    case "google.protobuf.Timestamp":
      return (value: MessageInitShape<typeof TimestampSchema>) =>
        `"${formatTimestamp(value.seconds ?? 0n, value.nanos ?? 0)}"`;
    case "google.protobuf.Empty":
      return () => "{}";
    case "google.protobuf.Value":
      return (value) => JSON.stringify(toJson(ValueSchema, create(ValueSchema, value)));
    case "google.protobuf.Struct":
      // Protobuf-es represents a Struct inside a message as a plain object.
      return (value) => JSON.stringify(value);
    case "google.protobuf.ListValue":
      return (value) => JSON.stringify(toJson(ListValueSchema, create(ListValueSchema, value)));
    default:
      throw new Error(`${message.typeName} has no JSON in this API`);
  }
}

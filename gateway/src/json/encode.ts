import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { lookUp } from "@holdfast/common/look-up.ts";
import { encodeWellKnown } from "./encode-well-known.ts";
import { bareItems, rulesOf } from "./field-rules.ts";

/** Writes one message as JSON text, from a message or an initializer of one. */
export type Encode = (message: object) => string;

type EncodeValue = (value: never) => string;
type Members = Readonly<Record<string, never>>;

/** Compiles encoders: every documented field is written, null when it has no value, in the order of the proto. */
export function createEncoders(): (message: DescMessage) => Encode {
  const compiled = new Map<string, Encode>();

  function encoderOf(message: DescMessage): Encode {
    const known = compiled.get(message.typeName);
    if (known !== undefined) return known;
    // A message may contain itself: the name is taken before its fields are compiled.
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
        const member = (value as Members)[field.name];
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

/** What an answer shows for a field that the handler left out. */
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

/** Integers are JSON numbers; an integer that a double cannot hold exactly must not leave. */
function exactInteger(value: number | bigint | string): string {
  if (!Number.isSafeInteger(Number(value))) throw new Error("an integer of the answer is beyond 2^53-1");
  return String(value);
}

// oxlint-disable-next-line no-control-regex -- these are what JSON must escape
const needsEscape = /["\\\u0000-\u001f\ud800-\udfff]/;

/** A JSON string; the common case without a call of JSON.stringify. */
function quote(text: string): string {
  return needsEscape.test(text) ? JSON.stringify(text) : `"${text}"`;
}

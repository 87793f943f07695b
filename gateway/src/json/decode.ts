import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { type Decode, decodeEnum, decodeScalar, faultOfText, wrongType } from "./decode-scalar.ts";
import { decodeTextOrNull, decodeWellKnown } from "./decode-well-known.ts";
import { bareItems, rulesOf } from "./field-rules.ts";
import type { Faults, Place } from "./faults.ts";
import { type JsonNode, type JsonObject, nameOfKind } from "./json-node.ts";

/** Reads members of an object into a new message; every fault is noted, the fields without one are set. */
export type DecodeObject = (node: JsonObject, place: Place | undefined, faults: Faults, source: string) => Message;

export interface Decoders {
  /** Only these fields may be members; all others are unknown, or `fixed`: there, and not to be changed. */
  object(message: DescMessage, fields: readonly DescField[], fixed?: ReadonlySet<string>): DecodeObject;
}

interface Member {
  readonly field: DescField;
  readonly clearable: boolean;
  readonly rawJson: boolean;
  readonly decode: Decode;
}

/** Compiles strict decoders: unknown and repeated keys, wrong types and needless nulls are faults. */
export function createDecoders(): Decoders {
  const compiled = new Map<string, Decode>();

  function decoderOf(message: DescMessage): Decode {
    const known = compiled.get(message.typeName);
    if (known !== undefined) return known;
    // A message may contain itself: the name is taken before its fields are compiled.
    let decode: Decode = () => undefined;
    compiled.set(message.typeName, (node, place, faults) => decode(node, place, faults));
    decode = decodeWellKnown(message) ?? compileNested(message);
    return decode;
  }

  function compileNested(message: DescMessage): Decode {
    if (message.fields.some((field) => rulesOf(field).rawJson)) {
      throw new Error(`${message.typeName} is nested: raw_json is for members of the body`);
    }
    const decode = object(message, message.fields);
    return (node, place, faults) => {
      if (node === null || typeof node !== "object" || node.kind !== "object")
        return wrongType(node, "an object", place, faults);
      return decode(node, place, faults, "");
    };
  }

  function object(
    message: DescMessage,
    fields: readonly DescField[],
    fixed: ReadonlySet<string> = new Set(),
  ): DecodeObject {
    if (fields.some((field) => field.oneof !== undefined && !field.proto.proto3Optional)) {
      throw new Error(`${message.typeName} has a oneof, which this API's JSON does not have`);
    }
    const members = new Map<string, Member>(
      fields.map((field) => {
        const { clearable, rawJson } = rulesOf(field);
        return [field.name, { field, clearable, rawJson, decode: decodeField(field) }];
      }),
    );
    const twins = new Map(
      fields.filter((field) => field.jsonName !== field.name).map((field) => [field.jsonName, field.name]),
    );
    return (node, place, faults, source) => {
      const result: Record<string, unknown> & Message = create(message) as never;
      for (const key of node.repeated) faults.at({ parent: place, key }, "duplicate_key", "is there more than once");
      for (const [key, { value, start, end }] of node.members) {
        const here = { parent: place, key };
        const member = members.get(key);
        if (member === undefined && fixed.has(key)) {
          faults.at(here, "fixed", "cannot be changed");
        } else if (member === undefined) {
          const twin = twins.get(key);
          faults.at(
            here,
            "unknown_field",
            twin === undefined ? "is not a field of this request" : `is spelled ${twin}`,
          );
        } else if (member.rawJson) {
          result[member.field.localName] = Buffer.from(source.slice(start, end), "utf8");
        } else if (value !== null || !member.clearable) {
          const decoded = member.decode(value, here, faults);
          if (decoded !== undefined) result[member.field.localName] = decoded;
        }
      }
      return result;
    };
  }

  function decodeField(field: DescField): Decode {
    if (rulesOf(field).rawJson) return () => undefined;
    if (field.fieldKind === "list") return decodeList(decodeSingle(field));
    if (field.fieldKind === "map") {
      if (field.mapKey !== ScalarType.STRING) throw new Error(`${field}: the keys of a JSON object are text`);
      return decodeMap(field.message?.typeName === "google.protobuf.Value" ? decodeTextOrNull : decodeSingle(field));
    }
    if (field.fieldKind === "message" && rulesOf(field).bare) {
      const { message } = field;
      const items = bareItems(message);
      const decode = decodeField(items);
      return (node, place, faults) => {
        const values = decode(node, place, faults);
        return values === undefined ? undefined : create(message, { [items.localName]: values } as never);
      };
    }
    return decodeSingle(field);
  }

  function decodeSingle(field: DescField): Decode {
    if (field.message !== undefined) return decoderOf(field.message);
    return field.enum === undefined ? decodeScalar(field.scalar) : decodeEnum(field.enum);
  }

  return { object };
}

function decodeList(item: Decode): Decode {
  return (node, place, faults) => {
    if (node === null || typeof node !== "object" || node.kind !== "array")
      return wrongType(node, "an array", place, faults);
    const values = node.items.map((entry, key) => item(entry, { parent: place, key }, faults));
    // A faulty item keeps its place out of the list; the fault is what the caller sees.
    return values.filter((value) => value !== undefined);
  };
}

function decodeMap(item: Decode): Decode {
  return (node: JsonNode, place, faults) => {
    if (node === null || typeof node !== "object" || node.kind !== "object") {
      return wrongType(node, "an object", place, faults, nameOfKind(node));
    }
    const values: Record<string, unknown> = {};
    for (const key of node.repeated) faults.at({ parent: place, key }, "duplicate_key", "is there more than once");
    for (const [key, member] of node.members) {
      const here = { parent: place, key };
      const detail = key === "__proto__" ? "is not a possible name" : faultOfText(key);
      if (detail !== undefined) faults.at(here, "invalid_text", detail);
      const value = detail === undefined ? item(member.value, here, faults) : undefined;
      if (value !== undefined) values[key] = value;
    }
    return values;
  };
}

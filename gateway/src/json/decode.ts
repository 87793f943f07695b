import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { type Decode, decodeEnum, decodeScalar, faultOfText, wrongType } from "./decode-scalar.ts";
import { decodeTextOrNull, decodeWellKnown } from "./decode-well-known.ts";
import { entriesMaxOf, addTooLong } from "./entries-max.ts";
import type { Faults, ValuePath } from "./faults.ts";
import { bareItems, rulesOf } from "./field-rules.ts";
import { type JsonNode, type JsonObject, nameOfKind } from "./json-node.ts";

/** Decodes an object to a new message. Adds all faults, and sets the valid fields. */
export type DecodeObject = (node: JsonObject, path: ValuePath | undefined, faults: Faults, source: string) => Message;

export interface Decoders {
  /** Permits only `fields` as members; others are faults: `fixed` (cannot be changed) or unknown. */
  object(message: DescMessage, fields: readonly DescField[], fixed?: ReadonlySet<string>): DecodeObject;
}

interface Member {
  readonly field: DescField;
  readonly clearable: boolean;
  readonly rawJson: boolean;
  readonly decode: Decode;
}

/** Compiles strict decoders: unknown and repeated keys, wrong types and nulls without a meaning are faults. */
export function createDecoders(): Decoders {
  const compiled = new Map<string, Decode>();

  function decoderOf(message: DescMessage): Decode {
    const cached = compiled.get(message.typeName);
    if (cached !== undefined) return cached;
    // A message may contain itself, so it is registered before its fields are compiled.
    let decode: Decode = () => undefined;
    compiled.set(message.typeName, (node, path, faults, source) => decode(node, path, faults, source));
    decode = decodeWellKnown(message) ?? compileNested(message);
    return decode;
  }

  function compileNested(message: DescMessage): Decode {
    const decode = object(message, message.fields);
    return (node, path, faults, source) => {
      if (node === null || typeof node !== "object" || node.kind !== "object")
        return wrongType(node, "an object", path, faults);
      return decode(node, path, faults, source);
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
    const snakeCaseNames = new Map(
      fields.filter((field) => field.jsonName !== field.name).map((field) => [field.jsonName, field.name]),
    );
    return (node, path, faults, source) => {
      const result: Record<string, unknown> & Message = create(message) as never;
      for (const key of node.repeated) faults.at({ parent: path, key }, "duplicate_key", "is there more than once");
      for (const [key, { value, start, end, raw }] of node.members) {
        const here = { parent: path, key };
        const member = members.get(key);
        if (member === undefined && fixed.has(key)) {
          faults.at(here, "fixed", "cannot be changed");
        } else if (member === undefined) {
          const snakeCase = snakeCaseNames.get(key);
          faults.at(
            here,
            "unknown_field",
            snakeCase === undefined ? "is not a field of this request" : `is spelled ${snakeCase}`,
          );
        } else if (member.rawJson) {
          result[member.field.localName] = raw ?? Buffer.from(source.slice(start, end), "utf8");
        } else if (value !== null || !member.clearable) {
          const decoded = member.decode(value, here, faults, source);
          if (decoded !== undefined) result[member.field.localName] = decoded;
        }
      }
      return result;
    };
  }

  function decodeField(field: DescField): Decode {
    if (rulesOf(field).rawJson) return () => undefined;
    if (field.fieldKind === "list") return decodeList(field, decodeSingle(field));
    if (field.fieldKind === "map") {
      if (field.mapKey !== ScalarType.STRING) throw new Error(`${field}: the keys of a JSON object are text`);
      const item = field.message?.typeName === "google.protobuf.Value" ? decodeTextOrNull : decodeSingle(field);
      return decodeMap(field, item);
    }
    if (field.fieldKind === "message" && rulesOf(field).bare) {
      const { message } = field;
      const items = bareItems(message);
      const decode = decodeField(items);
      return (node, path, faults, source) => {
        const values = decode(node, path, faults, source);
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

/** Decodes a list. The number of entries is checked first, so that a too long list costs no decoding. */
function decodeList(field: DescField, item: Decode): Decode {
  const max = entriesMaxOf(field);
  return (node, path, faults, source) => {
    if (node === null || typeof node !== "object" || node.kind !== "array")
      return wrongType(node, "an array", path, faults);
    if (node.items.length > max) return addTooLong(field, max, path, faults);
    const values = node.items.map((entry, key) => item(entry, { parent: path, key }, faults, source));
    // Items with a fault are left out; the request is refused because of the fault.
    return values.filter((value) => value !== undefined);
  };
}

function decodeMap(field: DescField, item: Decode): Decode {
  const max = entriesMaxOf(field);
  return (node: JsonNode, path, faults, source) => {
    if (node === null || typeof node !== "object" || node.kind !== "object") {
      return wrongType(node, "an object", path, faults, nameOfKind(node));
    }
    if (node.members.size > max) return addTooLong(field, max, path, faults);
    const values: Record<string, unknown> = {};
    for (const key of node.repeated) faults.at({ parent: path, key }, "duplicate_key", "is there more than once");
    for (const [key, member] of node.members) {
      const here = { parent: path, key };
      const detail = key === "__proto__" ? "is a reserved name" : faultOfText(key);
      if (detail !== undefined) faults.at(here, "invalid_text", detail);
      const value = detail === undefined ? item(member.value, here, faults, source) : undefined;
      if (value !== undefined) values[key] = value;
    }
    return values;
  };
}

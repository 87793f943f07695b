import { type DescEnum, ScalarType } from "@bufbuild/protobuf";
import type { Faults, ValuePath } from "./faults.ts";
import { type JsonNode, nameOfKind } from "./json-node.ts";

/** Decodes one value of the text `source`; for an invalid one adds a fault and returns undefined. */
export type Decode = (node: JsonNode, path: ValuePath | undefined, faults: Faults, source: string) => unknown;

// biome-ignore format: a table, aligned so that it reads as one
const integerRanges: Readonly<Partial<Record<ScalarType, readonly [number, number]>>> = {
  [ScalarType.INT32]:    [-(2 ** 31), 2 ** 31 - 1],
  [ScalarType.SINT32]:   [-(2 ** 31), 2 ** 31 - 1],
  [ScalarType.SFIXED32]: [-(2 ** 31), 2 ** 31 - 1],
  [ScalarType.UINT32]:   [0, 2 ** 32 - 1],
  [ScalarType.FIXED32]:  [0, 2 ** 32 - 1],
  [ScalarType.INT64]:    [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  [ScalarType.SINT64]:   [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  [ScalarType.SFIXED64]: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  [ScalarType.UINT64]:   [0, Number.MAX_SAFE_INTEGER],
  [ScalarType.FIXED64]:  [0, Number.MAX_SAFE_INTEGER],
};

const longs: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT64,
  ScalarType.SINT64,
  ScalarType.SFIXED64,
  ScalarType.UINT64,
  ScalarType.FIXED64,
]);

/** Minimum and maximum of an integer type in JSON; undefined for other types. */
export function integerRange(scalar: ScalarType): readonly [number, number] | undefined {
  return integerRanges[scalar];
}

/** The decoder of a scalar type. */
export function decodeScalar(scalar: ScalarType): Decode {
  if (scalar === ScalarType.STRING) return decodeText;
  if (scalar === ScalarType.BOOL) return decodeBoolean;
  if (scalar === ScalarType.BYTES) return decodeBytes;
  const range = integerRange(scalar);
  return range === undefined ? decodeReal : decodeInteger(range, longs.has(scalar));
}

/** Decodes a string; otherwise adds a fault and returns undefined. */
export function decodeText(node: JsonNode, path: ValuePath | undefined, faults: Faults): string | undefined {
  if (typeof node !== "string") return wrongType(node, "a string", path, faults);
  const detail = faultOfText(node);
  if (detail === undefined) return node;
  faults.at(path, "invalid_text", detail);
  return undefined;
}

/**
 * The fault of a text; undefined without one. Protobuf requires valid Unicode, and engines and stores refuse U+0000.
 */
export function faultOfText(text: string): string | undefined {
  if (text.includes("\u0000")) return "must not contain U+0000";
  return text.isWellFormed() ? undefined : "must be well-formed Unicode";
}

function decodeBoolean(node: JsonNode, path: ValuePath | undefined, faults: Faults): boolean | undefined {
  return typeof node === "boolean" ? node : wrongType(node, "a boolean", path, faults);
}

function decodeBytes(node: JsonNode, path: ValuePath | undefined, faults: Faults): Uint8Array | undefined {
  if (typeof node !== "string") return wrongType(node, "a base64 string", path, faults);
  const bytes = Buffer.from(node, "base64");
  if (bytes.toString("base64") === node) return bytes;
  faults.at(path, "invalid_base64", "must be base64 with padding");
  return undefined;
}

function decodeReal(node: JsonNode, path: ValuePath | undefined, faults: Faults): number | undefined {
  if (node === null || typeof node !== "object" || node.kind !== "number")
    return wrongType(node, "a number", path, faults);
  if (Number.isFinite(node.value)) return node.value;
  faults.at(path, "out_of_range", "is too large for a number");
  return undefined;
}

function decodeInteger([min, max]: readonly [number, number], long: boolean): Decode {
  return (node, path, faults) => {
    if (node === null || typeof node !== "object" || node.kind !== "number")
      return wrongType(node, "an integer", path, faults);
    if (!Number.isInteger(node.value)) return wrongType(node, "an integer", path, faults, "a fraction");
    if (node.value >= min && node.value <= max) return long ? BigInt(node.value) : node.value;
    faults.at(path, "out_of_range", `must be from ${min} to ${max}`);
    return undefined;
  };
}

/** The decoder of an enumeration by its JSON names; the zero value, "unspecified", has no name. */
export function decodeEnum(description: DescEnum): Decode {
  const byText = new Map(
    description.values.filter((value) => value.number !== 0).map((value) => [value.jsonName, value.number]),
  );
  const detail = `must be one of ${[...byText.keys()].join(", ")}`;
  return (node, path, faults) => {
    if (typeof node !== "string") return wrongType(node, "a string", path, faults);
    const number = byText.get(node);
    if (number === undefined) faults.at(path, "unknown_value", detail);
    return number;
  };
}

export function wrongType(
  node: JsonNode,
  expected: string,
  path: ValuePath | undefined,
  faults: Faults,
  found = nameOfKind(node),
): undefined {
  if (node === null) faults.at(path, "null_not_allowed", "must not be null");
  else faults.at(path, "wrong_type", `must be ${expected}, not ${found}`);
  return undefined;
}

import { type DescEnum, ScalarType } from "@bufbuild/protobuf";
import type { Faults, Place } from "./faults.ts";
import { type JsonNode, nameOfKind } from "./json-node.ts";

/** Reads one value of the text `source`; a fault is noted and undefined returned. */
export type Decode = (node: JsonNode, place: Place | undefined, faults: Faults, source: string) => unknown;

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

/** The least and greatest value of an integer type in JSON; undefined for other types. */
export function integerRange(scalar: ScalarType): readonly [number, number] | undefined {
  return integerRanges[scalar];
}

/** The reader of one scalar type; it reports other values as faults. */
export function decodeScalar(scalar: ScalarType): Decode {
  if (scalar === ScalarType.STRING) return decodeText;
  if (scalar === ScalarType.BOOL) return decodeBoolean;
  if (scalar === ScalarType.BYTES) return decodeBytes;
  const range = integerRange(scalar);
  return range === undefined ? decodeReal : decodeInteger(range, longs.has(scalar));
}

/** Undefined, with a fault, unless the node is a string. */
export function decodeText(node: JsonNode, place: Place | undefined, faults: Faults): string | undefined {
  if (typeof node !== "string") return wrongType(node, "a string", place, faults);
  const detail = faultOfText(node);
  if (detail === undefined) return node;
  faults.at(place, "invalid_text", detail);
  return undefined;
}

/** Protobuf carries Unicode only, and no engine or store takes a NUL. */
export function faultOfText(text: string): string | undefined {
  if (text.includes("\u0000")) return "must not contain U+0000";
  return text.isWellFormed() ? undefined : "must be well-formed Unicode";
}

function decodeBoolean(node: JsonNode, place: Place | undefined, faults: Faults): boolean | undefined {
  return typeof node === "boolean" ? node : wrongType(node, "a boolean", place, faults);
}

function decodeBytes(node: JsonNode, place: Place | undefined, faults: Faults): Uint8Array | undefined {
  if (typeof node !== "string") return wrongType(node, "a base64 string", place, faults);
  const bytes = Buffer.from(node, "base64");
  if (bytes.toString("base64") === node) return bytes;
  faults.at(place, "invalid_base64", "must be base64 with padding");
  return undefined;
}

function decodeReal(node: JsonNode, place: Place | undefined, faults: Faults): number | undefined {
  if (node === null || typeof node !== "object" || node.kind !== "number")
    return wrongType(node, "a number", place, faults);
  if (Number.isFinite(node.value)) return node.value;
  faults.at(place, "out_of_range", "is too large for a number");
  return undefined;
}

function decodeInteger([least, greatest]: readonly [number, number], long: boolean): Decode {
  return (node, place, faults) => {
    if (node === null || typeof node !== "object" || node.kind !== "number")
      return wrongType(node, "an integer", place, faults);
    if (!Number.isInteger(node.value)) return wrongType(node, "an integer", place, faults, "a fraction");
    if (node.value >= least && node.value <= greatest) return long ? BigInt(node.value) : node.value;
    faults.at(place, "out_of_range", `must be from ${least} to ${greatest}`);
    return undefined;
  };
}

/** Enumerations in the spec's spelling; the zero value cannot be said. */
export function decodeEnum(description: DescEnum): Decode {
  const byText = new Map(
    description.values.filter((value) => value.number !== 0).map((value) => [value.jsonName, value.number]),
  );
  const detail = `must be one of ${[...byText.keys()].join(", ")}`;
  return (node, place, faults) => {
    if (typeof node !== "string") return wrongType(node, "a string", place, faults);
    const number = byText.get(node);
    if (number === undefined) faults.at(place, "unknown_value", detail);
    return number;
  };
}

export function wrongType(
  node: JsonNode,
  wanted: string,
  place: Place | undefined,
  faults: Faults,
  found = nameOfKind(node),
): undefined {
  if (node === null) faults.at(place, "null_not_allowed", "must not be null");
  else faults.at(place, "wrong_type", `must be ${wanted}, not ${found}`);
  return undefined;
}

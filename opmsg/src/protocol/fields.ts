import { onDemand } from "bson";
import { ProtocolError } from "./message.ts";

/** Types of BSON's specification that the front end reads. */
export const bsonTypes = {
  double: 1,
  string: 2,
  document: 3,
  array: 4,
  binary: 5,
  boolean: 8,
  int32: 16,
  int64: 18,
} as const;

/** A field of a document; `value` has the bytes of its value. A name may occur several times. */
export interface Field {
  readonly name: string;
  readonly type: number;
  readonly value: Buffer;
}

/** Fields of a BSON document, without those of documents inside it. Throws ProtocolError if it is malformed. */
export function fieldsOf(document: Buffer): Field[] {
  try {
    return [...onDemand.parseToElements(document)].map(([type, nameOffset, nameLength, offset, length]) => ({
      name: document.toString("utf8", nameOffset, nameOffset + nameLength),
      type,
      value: document.subarray(offset, offset + length),
    }));
  } catch (error) {
    throw new ProtocolError("malformed BSON", { cause: error });
  }
}

/** The fields with this name. Readers of BSON differ in which of them they use. */
export function fieldsNamed(fields: readonly Field[], name: string): Field[] {
  return fields.filter((field) => field.name === name);
}

/** Text of a string; undefined for another type. */
export function textOf({ type, value }: Field): string | undefined {
  return type === bsonTypes.string && value.length >= 5 ? value.toString("utf8", 4, value.length - 1) : undefined;
}

/** Value of a number, except Decimal128; undefined for another type. */
export function numberOf({ type, value }: Field): number | undefined {
  if (type === bsonTypes.int32) return value.readInt32LE(0);
  if (type === bsonTypes.int64) return Number(value.readBigInt64LE(0));
  return type === bsonTypes.double ? value.readDoubleLE(0) : undefined;
}

/** Bytes of a binary value; undefined for another type. */
export function binaryOf({ type, value }: Field): Buffer | undefined {
  return type === bsonTypes.binary && value.length >= 5 ? value.subarray(5) : undefined;
}

/** Documents of an array; other values in it are left out. Empty for another type. */
export function documentsOf({ type, value }: Field): Field[][] {
  if (type !== bsonTypes.array) return [];
  return fieldsOf(value).flatMap((item) => (item.type === bsonTypes.document ? [fieldsOf(item.value)] : []));
}

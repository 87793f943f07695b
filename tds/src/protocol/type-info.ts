import { defaultCollation, findCollation } from "../types/collation.ts";
import { isCharacter, type TsqlType, type TypeName } from "../types/tsql-type.ts";
import type { ByteReader } from "./byte-reader.ts";
import type { ByteWriter } from "./byte-writer.ts";
import { ProtocolError } from "./protocol-error.ts";
import type { WireFormat } from "./tds-version.ts";
import { typeTokens } from "./type-token.ts";

/** Length that marks a `max` type, whose values are partially length-prefixed (PLP), in 7.2 and later. */
const plpLength = 0xffff;
const longLength = 0x7fffffff;
/** Max length of a sql_variant with the head of its base type. */
const variantBytesMax = 8_009;

/**
 * Type on the wire for values of `type`: versions before 7.2 lack `max`, and before 7.3 the new date types. A text with
 * a collation of UTF-8 is national, since not every client can read UTF-8.
 */
export function wireType(type: TsqlType, format: WireFormat): TsqlType {
  if (!isCharacter(type) || type.name === "xml") return versionedType(type, format);
  const collation = (type.collation === undefined ? undefined : findCollation(type.collation)) ?? format.collation;
  const national = collation.isUtf8 ? nationalType(type) : type;
  const { name, length } = versionedType(national, format);
  return {
    name,
    ...(length !== undefined && { length }),
    ...(collation.name !== defaultCollation.name && { collation: collation.name }),
  };
}

function nationalType({ name, length }: TsqlType): TsqlType {
  switch (name) {
    case "char":
    case "varchar":
      if (typeof length !== "number" || length > 4_000) return { name: "nvarchar", length: "max" };
      return { name: name === "char" ? "nchar" : "nvarchar", length };
    case "text":
      return { name: "ntext" };
    default:
      return length === undefined ? { name } : { name, length };
  }
}

function versionedType(type: TsqlType, format: WireFormat): TsqlType {
  const { name, length } = type;
  // A variant with one of these base types is a text for such a client.
  if (!format.has73 && name === "sql_variant") return { name, length: 34 };
  if (!format.has73 && ["date", "time", "datetime2", "datetimeoffset"].includes(name))
    return { name: "nvarchar", length: 34 };
  if (name === "rowversion") return { name: "binary", length: 8 };
  if (!format.has72) {
    if (name === "xml") return { name: "ntext" };
    if (length === "max") return { name: longOf[name] ?? "ntext" };
  }
  return type;
}

const longOf: Partial<Record<TypeName, TypeName>> = {
  char: "text",
  varchar: "text",
  nchar: "ntext",
  nvarchar: "ntext",
  binary: "image",
  varbinary: "image",
};

const byteLength: Partial<Record<TypeName, readonly [token: number, length: number]>> = {
  bit: [typeTokens.bitN, 1],
  tinyint: [typeTokens.intN, 1],
  smallint: [typeTokens.intN, 2],
  int: [typeTokens.intN, 4],
  bigint: [typeTokens.intN, 8],
  real: [typeTokens.floatN, 4],
  float: [typeTokens.floatN, 8],
  smallmoney: [typeTokens.moneyN, 4],
  money: [typeTokens.moneyN, 8],
  smalldatetime: [typeTokens.datetimeN, 4],
  datetime: [typeTokens.datetimeN, 8],
  uniqueidentifier: [typeTokens.guid, 16],
};

const scaled: Partial<Record<TypeName, number>> = {
  time: typeTokens.time,
  datetime2: typeTokens.datetime2,
  datetimeoffset: typeTokens.datetimeoffset,
};

const shortLength: Partial<Record<TypeName, readonly [token: number, unitBytes: number]>> = {
  char: [typeTokens.bigChar, 1],
  varchar: [typeTokens.bigVarchar, 1],
  nchar: [typeTokens.nchar, 2],
  nvarchar: [typeTokens.nvarchar, 2],
  binary: [typeTokens.bigBinary, 1],
  varbinary: [typeTokens.bigVarbinary, 1],
};

const longs: Partial<Record<TypeName, number>> = {
  text: typeTokens.text,
  ntext: typeTokens.ntext,
  image: typeTokens.image,
};

/** Bytes of the magnitude and sign of a decimal by its precision. */
export function decimalBytes(precision: number): number {
  if (precision <= 9) return 5;
  if (precision <= 19) return 9;
  return precision <= 28 ? 13 : 17;
}

export function timeBytes(scale: number): number {
  if (scale <= 2) return 3;
  return scale <= 4 ? 4 : 5;
}

/** Writes the TYPE_INFO of a type that `wireType` returned. */
export function writeTypeInfo(writer: ByteWriter, type: TsqlType): void {
  const { name, length, precision, scale } = type;
  const fixed = byteLength[name];
  if (fixed !== undefined) {
    writer.uint8(fixed[0]).uint8(fixed[1]);
    return;
  }
  if (name === "decimal") {
    const digits = precision ?? 38;
    writer
      .uint8(typeTokens.numericN)
      .uint8(decimalBytes(digits))
      .uint8(digits)
      .uint8(scale ?? 0);
    return;
  }
  if (name === "date") {
    writer.uint8(typeTokens.date);
    return;
  }
  const scaledToken = scaled[name];
  if (scaledToken !== undefined) {
    writer.uint8(scaledToken).uint8(scale ?? 7);
    return;
  }
  const long = longs[name];
  if (long !== undefined) {
    writer.uint8(long).uint32(longLength);
    if (name !== "image") writer.bytes(collationBytes(type));
    return;
  }
  if (name === "sql_variant") {
    writer.uint8(typeTokens.variant).uint32(variantBytesMax);
    return;
  }
  if (name === "xml") {
    writer.uint8(typeTokens.xml).uint8(0);
    return;
  }
  const [token, unitBytes] = shortLength[name] ?? [typeTokens.nvarchar, 2];
  writer.uint8(token).uint16(length === "max" || length === undefined ? plpLength : Math.max(1, length) * unitBytes);
  if (name !== "binary" && name !== "varbinary") writer.bytes(collationBytes(type));
}

function collationBytes({ collation }: TsqlType): Uint8Array {
  return (collation === undefined ? defaultCollation : (findCollation(collation) ?? defaultCollation)).wire;
}

/** Layout of the values of a type that a client sent. */
export type Layout = "null" | "fixed" | "byteLength" | "shortLength" | "longLength" | "plp" | "variant";

export interface SentType {
  readonly type: TsqlType;
  readonly layout: Layout;
  /** Size of a fixed layout in bytes; the max size of other layouts. */
  readonly size: number;
  /** True for a varchar whose collation is of UTF-8; others are in the code page 1252. */
  readonly isUtf8?: boolean;
}

/** Reads a collation; true if it is one of UTF-8. */
const readsUtf8 = (reader: ByteReader): boolean => ((reader.bytes(5)[3] ?? 0) & 0x04) !== 0;

type Reading = (reader: ByteReader) => SentType;

const fixedType = (name: TypeName, size: number): Reading => {
  return () => ({ type: { name }, layout: "fixed", size });
};

/** A type whose name follows from the length that the client sent. */
const sizedType = (names: Readonly<Record<number, TypeName>>): Reading => {
  return (reader) => {
    const size = reader.uint8();
    const name = names[size];
    if (name === undefined) throw new ProtocolError(`a type has a length of ${size} bytes`);
    return { type: { name }, layout: "byteLength", size };
  };
};

const legacyType = (name: TypeName, hasCollation: boolean): Reading => {
  return (reader) => {
    const size = reader.uint8();
    const isUtf8 = hasCollation && readsUtf8(reader);
    return { type: { name, length: Math.max(1, size) }, layout: "byteLength", size, ...(isUtf8 && { isUtf8 }) };
  };
};

const decimalType: Reading = (reader) => {
  const size = reader.uint8();
  const precision = reader.uint8();
  const scale = reader.uint8();
  if (precision < 1 || precision > 38 || scale > precision)
    throw new ProtocolError(`a decimal has precision ${precision} and scale ${scale}`);
  return { type: { name: "decimal", precision, scale }, layout: "byteLength", size };
};

const scaledType = (name: TypeName): Reading => {
  return (reader) => {
    const scale = reader.uint8();
    if (scale > 7) throw new ProtocolError(`a type of time has a scale of ${scale}`);
    return { type: { name, scale }, layout: "byteLength", size: 10 };
  };
};

const shortType = (name: TypeName, unitBytes: number, hasCollation: boolean): Reading => {
  return (reader) => {
    const size = reader.uint16();
    const encoding = hasCollation && readsUtf8(reader) ? { isUtf8: true } : {};
    if (size === plpLength) return { type: { name, length: "max" }, layout: "plp", size: 0, ...encoding };
    const length = Math.max(1, Math.floor(size / unitBytes));
    return { type: { name, length }, layout: "shortLength", size, ...encoding };
  };
};

const longType = (name: TypeName, hasCollation: boolean): Reading => {
  return (reader) => {
    const size = reader.uint32();
    const isUtf8 = hasCollation && readsUtf8(reader);
    return { type: { name }, layout: "longLength", size, ...(isUtf8 && { isUtf8 }) };
  };
};

const xmlType: Reading = (reader) => {
  if (reader.uint8() !== 0) {
    reader.byteVarchar();
    reader.byteVarchar();
    reader.shortVarchar();
  }
  return { type: { name: "xml" }, layout: "plp", size: 0 };
};

const readings: Readonly<Record<number, Reading>> = {
  [typeTokens.null]: () => ({ type: { name: "int" }, layout: "null", size: 0 }),
  [typeTokens.bit]: fixedType("bit", 1),
  [typeTokens.int1]: fixedType("tinyint", 1),
  [typeTokens.int2]: fixedType("smallint", 2),
  [typeTokens.int4]: fixedType("int", 4),
  [typeTokens.int8]: fixedType("bigint", 8),
  [typeTokens.float4]: fixedType("real", 4),
  [typeTokens.float8]: fixedType("float", 8),
  [typeTokens.money]: fixedType("money", 8),
  [typeTokens.money4]: fixedType("smallmoney", 4),
  [typeTokens.datetime]: fixedType("datetime", 8),
  [typeTokens.datetime4]: fixedType("smalldatetime", 4),
  [typeTokens.bitN]: sizedType({ 1: "bit" }),
  [typeTokens.intN]: sizedType({ 1: "tinyint", 2: "smallint", 4: "int", 8: "bigint" }),
  [typeTokens.floatN]: sizedType({ 4: "real", 8: "float" }),
  [typeTokens.moneyN]: sizedType({ 4: "smallmoney", 8: "money" }),
  [typeTokens.datetimeN]: sizedType({ 4: "smalldatetime", 8: "datetime" }),
  [typeTokens.guid]: sizedType({ 0: "uniqueidentifier", 16: "uniqueidentifier" }),
  [typeTokens.decimalN]: decimalType,
  [typeTokens.numericN]: decimalType,
  [typeTokens.legacyDecimal]: decimalType,
  [typeTokens.legacyNumeric]: decimalType,
  [typeTokens.date]: () => ({ type: { name: "date" }, layout: "byteLength", size: 3 }),
  [typeTokens.time]: scaledType("time"),
  [typeTokens.datetime2]: scaledType("datetime2"),
  [typeTokens.datetimeoffset]: scaledType("datetimeoffset"),
  [typeTokens.legacyChar]: legacyType("char", true),
  [typeTokens.legacyVarchar]: legacyType("varchar", true),
  [typeTokens.legacyBinary]: legacyType("binary", false),
  [typeTokens.legacyVarbinary]: legacyType("varbinary", false),
  [typeTokens.bigChar]: shortType("char", 1, true),
  [typeTokens.bigVarchar]: shortType("varchar", 1, true),
  [typeTokens.nchar]: shortType("nchar", 2, true),
  [typeTokens.nvarchar]: shortType("nvarchar", 2, true),
  [typeTokens.bigBinary]: shortType("binary", 1, false),
  [typeTokens.bigVarbinary]: shortType("varbinary", 1, false),
  [typeTokens.text]: longType("text", true),
  [typeTokens.ntext]: longType("ntext", true),
  [typeTokens.image]: longType("image", false),
  [typeTokens.xml]: xmlType,
  [typeTokens.variant]: (reader) => ({ type: { name: "sql_variant" }, layout: "variant", size: reader.int32() }),
};

/** Reads the TYPE_INFO of a parameter; a ProtocolError for types that parameters cannot have, such as tables. */
export function readTypeInfo(reader: ByteReader): SentType {
  const token = reader.uint8();
  const reading = readings[token];
  if (reading === undefined) throw new ProtocolError(`a parameter has the data type 0x${token.toString(16)}`);
  return reading(reader);
}

import { decodeCodePage, encodeCodePage } from "../types/code-page.ts";
import { defaultCollation } from "../types/collation.ts";
import { fromUnits, toUnits } from "../types/decimal.ts";
import {
  dateText,
  daysTo1900,
  type Moment,
  offsetText,
  parseMoment,
  roundMoment,
  timeText,
  toLocal,
  toUtc,
} from "../types/temporal.ts";
import { isBinary, isCharacter, type TsqlType, type TypeName, type Value } from "../types/tsql-type.ts";
import { type Variant, variantOf, variantText } from "../types/variant.ts";
import { ByteReader } from "./byte-reader.ts";
import { ByteWriter } from "./byte-writer.ts";
import { ProtocolError } from "./protocol-error.ts";
import { decimalBytes, type SentType, timeBytes } from "./type-info.ts";
import { typeTokens } from "./type-token.ts";

const nullShort = 0xffff;
const nullPlp = 0xffffffffffffffffn;
const ticksPerMinute = 600_000_000n;

/** A value that its type cannot carry, such as a number beyond the range of a decimal: error 8115. */
export class ValueOutOfRange extends Error {
  override readonly name = "ValueOutOfRange";
  readonly type: TsqlType;

  constructor(type: TsqlType) {
    super(`a value is outside of the range of ${type.name}`);
    this.type = type;
  }
}

/** Writes a value of a type that `wireType` returned. */
export function writeValue(writer: ByteWriter, type: TsqlType, value: Value): void {
  const { name, length } = type;
  switch (name) {
    case "char":
    case "varchar":
    case "nchar":
    case "nvarchar":
    case "binary":
    case "varbinary":
    case "xml":
    case "rowversion":
      if (length === "max" || length === undefined) writePlp(writer, value === null ? null : bytesOf(type, value));
      else if (value === null) writer.uint16(nullShort);
      else writeShort(writer, bytesOf(type, value), type);
      return;
    case "sql_variant":
      writeVariant(writer, type, value);
      return;
    case "text":
    case "ntext":
    case "image":
      writeLong(writer, value === null ? null : bytesOf(type, value));
      return;
    default:
      if (value === null) writer.uint8(0);
      else writeFixed(writer, type, value);
  }
}

function bytesOf({ name }: TsqlType, value: string): Buffer {
  switch (name) {
    case "char":
    case "varchar":
    case "text":
      return encodeCodePage(value);
    case "binary":
    case "varbinary":
    case "image":
    case "rowversion":
      return value.startsWith("\\x") ? Buffer.from(value.slice(2), "hex") : Buffer.from(value);
    default:
      return Buffer.from(value, "utf16le");
  }
}

/** Writes the length, the token and the properties of the base type, and the value. */
function writeVariant(writer: ByteWriter, { length }: TsqlType, value: Value): void {
  if (value === null) {
    writer.uint32(0);
    return;
  }
  const { type, text } = withoutDates(variantOf(value), length !== undefined);
  const properties = new ByteWriter(16);
  const data = new ByteWriter(64);
  const bytes = isCharacter(type) || isBinary(type) ? bytesOf(type, text) : undefined;
  if (bytes === undefined) writeFixed(data, type, text);
  if (isCharacter(type)) properties.bytes(defaultCollation.wire);
  if (bytes !== undefined) properties.uint16(Math.max(1, bytes.length));
  if (type.name === "decimal") properties.uint8(type.precision ?? 38).uint8(type.scale ?? 0);
  if (type.name === "time" || type.name === "datetime2" || type.name === "datetimeoffset")
    properties.uint8(type.scale ?? 7);
  const head = properties.take();
  // The first byte of a value with a variable length is its length, which a variant has once.
  const content = bytes ?? data.take().subarray(1);
  writer.uint32(2 + head.length + content.length).uint8(variantTokens[type.name] ?? typeTokens.nvarchar);
  writer.uint8(head.length).bytes(head).bytes(content);
}

/** Base types and their tokens in a variant. */
const variantTokens: Partial<Record<TypeName, number>> = {
  bit: typeTokens.bit,
  tinyint: typeTokens.int1,
  smallint: typeTokens.int2,
  int: typeTokens.int4,
  bigint: typeTokens.int8,
  decimal: typeTokens.numericN,
  smallmoney: typeTokens.money4,
  money: typeTokens.money,
  real: typeTokens.float4,
  float: typeTokens.float8,
  date: typeTokens.date,
  time: typeTokens.time,
  datetime2: typeTokens.datetime2,
  datetimeoffset: typeTokens.datetimeoffset,
  datetime: typeTokens.datetime,
  smalldatetime: typeTokens.datetime4,
  char: typeTokens.bigChar,
  varchar: typeTokens.bigVarchar,
  nchar: typeTokens.nchar,
  nvarchar: typeTokens.nvarchar,
  binary: typeTokens.bigBinary,
  varbinary: typeTokens.bigVarbinary,
  uniqueidentifier: typeTokens.guid,
};

const dates: readonly TypeName[] = ["date", "time", "datetime2", "datetimeoffset"];

function withoutDates(variant: Variant, applies: boolean): Variant {
  const { type, text } = variant;
  return applies && dates.includes(type.name) ? { type: { name: "nvarchar", length: 34 }, text } : variant;
}

function readVariant(reader: ByteReader): Value {
  const length = reader.uint32();
  if (length === 0) return null;
  const inner = new ByteReader(reader.bytes(length));
  const token = inner.uint8();
  const properties = new ByteReader(inner.bytes(inner.uint8()));
  const entry = Object.entries(variantTokens).find(([, each]) => each === token);
  const name = token === typeTokens.decimalN ? "decimal" : (entry?.[0] as TypeName | undefined);
  if (name === undefined) throw new ProtocolError(`a variant has the data type 0x${token.toString(16)}`);
  const type = variantType(name, properties);
  return variantText(type, textOf(type, inner.bytes(inner.remaining)));
}

function variantType(name: TypeName, properties: ByteReader): TsqlType {
  switch (name) {
    case "decimal": {
      const precision = properties.uint8();
      const scale = properties.uint8();
      if (precision < 1 || precision > 38 || scale > precision)
        throw new ProtocolError(`a decimal has precision ${precision} and scale ${scale}`);
      return { name, precision, scale };
    }
    case "time":
    case "datetime2":
    case "datetimeoffset": {
      const scale = properties.uint8();
      if (scale > 7) throw new ProtocolError(`a type of time has a scale of ${scale}`);
      return { name, scale };
    }
    case "char":
    case "varchar":
      properties.bytes(5);
      return { name, length: Math.max(1, properties.uint16()) };
    case "nchar":
    case "nvarchar":
      properties.bytes(5);
      return { name, length: Math.max(1, properties.uint16() >> 1) };
    case "binary":
    case "varbinary":
      return { name, length: Math.max(1, properties.uint16()) };
    default:
      return { name };
  }
}

function writeShort(writer: ByteWriter, bytes: Buffer, type: TsqlType): void {
  if (bytes.length >= nullShort) throw new ValueOutOfRange(type);
  writer.uint16(bytes.length).bytes(bytes);
}

/** Writes a partially length-prefixed value (PLP): the length, one chunk and a terminator. */
function writePlp(writer: ByteWriter, bytes: Buffer | null): void {
  if (bytes === null) {
    writer.uint64(nullPlp);
    return;
  }
  writer.uint64(BigInt(bytes.length));
  if (bytes.length > 0) writer.uint32(bytes.length).bytes(bytes);
  writer.uint32(0);
}

/** Writes a value of a legacy text type: a text pointer and a timestamp, which clients skip, then the length. */
function writeLong(writer: ByteWriter, bytes: Buffer | null): void {
  if (bytes === null) writer.uint8(0);
  else writer.uint8(16).bytes(Buffer.alloc(24)).uint32(bytes.length).bytes(bytes);
}

function writeFixed(writer: ByteWriter, type: TsqlType, value: string): void {
  switch (type.name) {
    case "bit":
      writer.uint8(1).uint8(value === "1" || value === "t" || value === "true" ? 1 : 0);
      return;
    case "tinyint":
      writer.uint8(1).uint8(integerOf(type, value, 0, 0xff));
      return;
    case "smallint":
      writer.uint8(2).uint16(integerOf(type, value, -0x8000, 0x7fff));
      return;
    case "int":
      writer.uint8(4).int32(integerOf(type, value, -0x8000_0000, 0x7fff_ffff));
      return;
    case "bigint":
      writer.uint8(8).uint64(BigInt(value));
      return;
    case "real":
    case "float":
      writeFloat(writer, type.name, Number(value));
      return;
    case "smallmoney":
      writer.uint8(4).int32(Number(unitsOf(type, value, 4)));
      return;
    case "money": {
      const units = BigInt.asUintN(64, unitsOf(type, value, 4));
      writer
        .uint8(8)
        .uint32(Number(units >> 32n))
        .uint32(Number(units & 0xffffffffn));
      return;
    }
    case "decimal":
      writeDecimal(writer, type, value);
      return;
    case "uniqueidentifier":
      writer.uint8(16).bytes(swapGuid(Buffer.from(value.replaceAll("-", ""), "hex")));
      return;
    default:
      writeTemporal(writer, type, momentOf(type, value));
  }
}

function integerOf(type: TsqlType, value: string, low: number, high: number): number {
  const number = Number(value);
  if (!(number >= low && number <= high)) throw new ValueOutOfRange(type);
  return number;
}

function writeFloat(writer: ByteWriter, name: "real" | "float", value: number): void {
  const bytes = Buffer.alloc(name === "real" ? 4 : 8);
  if (name === "real") bytes.writeFloatLE(value);
  else bytes.writeDoubleLE(value);
  writer.byteVarbyte(bytes);
}

function unitsOf(type: TsqlType, value: string, scale: number): bigint {
  const units = toUnits(value, scale);
  if (units === undefined) throw new ValueOutOfRange(type);
  return units;
}

function writeDecimal(writer: ByteWriter, type: TsqlType, value: string): void {
  const units = unitsOf(type, value, type.scale ?? 0);
  const length = decimalBytes(type.precision ?? 38);
  const magnitude = units < 0n ? -units : units;
  if (magnitude >= 1n << BigInt((length - 1) * 8)) throw new ValueOutOfRange(type);
  writer
    .uint8(length)
    .uint8(units < 0n ? 0 : 1)
    .unsigned(magnitude, length - 1);
}

function momentOf(type: TsqlType, value: string): Moment {
  const moment = parseMoment(value);
  if (moment === undefined) throw new ValueOutOfRange(type);
  return moment;
}

function writeTemporal(writer: ByteWriter, type: TsqlType, exact: Moment): void {
  const scale = type.scale ?? 7;
  const moment = type.name === "datetime" || type.name === "smalldatetime" ? exact : roundMoment(exact, scale);
  const units = (ticks: bigint) => ticks / 10n ** BigInt(7 - scale);
  const length = timeBytes(scale);
  switch (type.name) {
    case "date":
      writer.uint8(3).unsigned(BigInt(moment.days), 3);
      return;
    case "time":
      // PostgreSQL's 24:00:00 is not a time of day in T-SQL.
      writer.uint8(length).unsigned(units(moment.days > exact.days ? 0n : moment.ticks), length);
      return;
    case "datetime2":
      writer
        .uint8(length + 3)
        .unsigned(units(moment.ticks), length)
        .unsigned(BigInt(moment.days), 3);
      return;
    case "datetimeoffset": {
      const utc = toUtc(moment);
      writer.uint8(length + 5).unsigned(units(utc.ticks), length);
      writer.unsigned(BigInt(utc.days), 3).uint16(moment.offsetMinutes);
      return;
    }
    case "smalldatetime": {
      const minutes = (moment.ticks + ticksPerMinute / 2n) / ticksPerMinute;
      const days = moment.days - daysTo1900 + (minutes === 1_440n ? 1 : 0);
      if (days < 0 || days > 0xffff) throw new ValueOutOfRange(type);
      writer
        .uint8(4)
        .uint16(days)
        .uint16(Number(minutes % 1_440n));
      return;
    }
    default: {
      // 1/300 s are 100,000 / 3 ticks.
      const thirds = (moment.ticks * 3n + 50_000n) / 100_000n;
      const day = 86_400n * 300n;
      writer.uint8(8).int32(moment.days - daysTo1900 + (thirds === day ? 1 : 0));
      writer.uint32(Number(thirds % day));
    }
  }
}

/** The first three groups of a GUID are little-endian on the wire. */
function swapGuid(bytes: Buffer): Buffer {
  const order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
  return Buffer.from(order.map((index) => bytes[index] ?? 0));
}

/** Reads a value of a parameter. */
export function readValue(reader: ByteReader, sent: SentType): Value {
  if (sent.layout === "variant") return readVariant(reader);
  const bytes = readBytes(reader, sent);
  return bytes === null ? null : textOf(sent.type, bytes, sent.isUtf8);
}

/** Skips a value, and checks its length alone. */
export function skipValue(reader: ByteReader, sent: SentType): void {
  if (sent.layout !== "plp") {
    readBytes(reader, sent);
    return;
  }
  if (reader.uint64() === nullPlp) return;
  for (let length = reader.uint32(); length !== 0; length = reader.uint32()) reader.bytes(length);
}

function readBytes(reader: ByteReader, { layout, size }: SentType): Buffer | null {
  switch (layout) {
    case "null":
      return null;
    case "fixed":
      return reader.bytes(size);
    case "byteLength": {
      const length = reader.uint8();
      return length === 0 ? null : reader.bytes(length);
    }
    case "shortLength": {
      const length = reader.uint16();
      return length === nullShort ? null : reader.bytes(length);
    }
    case "longLength": {
      const length = reader.int32();
      return length === -1 ? null : reader.bytes(length);
    }
    case "variant": {
      const length = reader.uint32();
      return length === 0 ? null : reader.bytes(length);
    }
    case "plp":
      return readPlp(reader);
  }
}

function readPlp(reader: ByteReader): Buffer | null {
  if (reader.uint64() === nullPlp) return null;
  const chunks: Buffer[] = [];
  for (;;) {
    const length = reader.uint32();
    if (length === 0) return chunks.length === 1 ? (chunks[0] ?? null) : Buffer.concat(chunks);
    chunks.push(reader.bytes(length));
  }
}

function textOf(type: TsqlType, bytes: Buffer, isUtf8 = false): string {
  switch (type.name) {
    case "char":
    case "varchar":
    case "text":
      return isUtf8 ? bytes.toString("utf8") : decodeCodePage(bytes);
    case "nchar":
    case "nvarchar":
    case "ntext":
      return bytes.toString("utf16le");
    case "xml":
      return bytes.toString("utf16le").replace(/^\ufeff/, "");
    case "binary":
    case "varbinary":
    case "image":
      return `\\x${bytes.toString("hex")}`;
    case "bit":
      return exactly(bytes, 1).readUInt8() === 0 ? "0" : "1";
    case "tinyint":
      return String(exactly(bytes, 1).readUInt8());
    case "smallint":
      return String(exactly(bytes, 2).readInt16LE());
    case "int":
      return String(exactly(bytes, 4).readInt32LE());
    case "bigint":
      return String(exactly(bytes, 8).readBigInt64LE());
    case "real":
      return String(Math.fround(exactly(bytes, 4).readFloatLE()));
    case "float":
      return String(exactly(bytes, 8).readDoubleLE());
    case "smallmoney":
      return fromUnits(BigInt(exactly(bytes, 4).readInt32LE()), 4);
    case "money": {
      exactly(bytes, 8);
      const units = (BigInt(bytes.readInt32LE(0)) << 32n) | BigInt(bytes.readUInt32LE(4));
      return fromUnits(units, 4);
    }
    case "decimal": {
      if (bytes.length < 2 || bytes.length > 17) throw new ProtocolError(`a decimal has ${bytes.length} bytes`);
      const magnitude = unsigned(bytes.subarray(1));
      return fromUnits(bytes[0] === 0 ? -magnitude : magnitude, type.scale ?? 0);
    }
    case "uniqueidentifier":
      return exactly(swapGuid(bytes), 16)
        .toString("hex")
        .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    default:
      return temporalText(type, bytes);
  }
}

function temporalText(type: TsqlType, bytes: Buffer): string {
  const scale = type.scale ?? 7;
  const length = timeBytes(scale);
  const ticks = (part: Buffer) => checkedTicks(unsigned(part) * 10n ** BigInt(7 - scale));
  switch (type.name) {
    case "date":
      return dateText(checkedDays(Number(unsigned(exactly(bytes, 3)))));
    case "time":
      return timeText(ticks(exactly(bytes, length)));
    case "datetime2": {
      exactly(bytes, length + 3);
      const days = checkedDays(Number(unsigned(bytes.subarray(length))));
      return `${dateText(days)} ${timeText(ticks(bytes.subarray(0, length)))}`;
    }
    case "datetimeoffset": {
      exactly(bytes, length + 5);
      const days = checkedDays(Number(unsigned(bytes.subarray(length, length + 3))));
      const offsetMinutes = bytes.readInt16LE(length + 3);
      if (Math.abs(offsetMinutes) > 14 * 60) throw new ProtocolError("a datetimeoffset has an impossible offset");
      const local = toLocal({ days, ticks: ticks(bytes.subarray(0, length)), offsetMinutes });
      return `${dateText(checkedDays(local.days))} ${timeText(local.ticks)}${offsetText(offsetMinutes)}`;
    }
    case "smalldatetime": {
      exactly(bytes, 4);
      const time = timeText(checkedTicks(BigInt(bytes.readUInt16LE(2)) * ticksPerMinute));
      return `${dateText(bytes.readUInt16LE(0) + daysTo1900)} ${time}`;
    }
    default: {
      exactly(bytes, 8);
      const days = checkedDays(bytes.readInt32LE(0) + daysTo1900);
      // Rounded to milliseconds, as SQL Server prints datetime.
      const milliseconds = (BigInt(bytes.readUInt32LE(4)) * 10n + 1n) / 3n;
      return `${dateText(days)} ${timeText(checkedTicks(milliseconds * 10_000n))}`;
    }
  }
}

/** The last day is 9999-12-31. */
function checkedDays(days: number): number {
  if (days < 0 || days > 3_652_058) throw new ProtocolError("a date is outside of the years 1 to 9999");
  return days;
}

function checkedTicks(ticks: bigint): bigint {
  if (ticks >= 864_000_000_000n) throw new ProtocolError("a time is longer than a day");
  return ticks;
}

function exactly(bytes: Buffer, length: number): Buffer {
  if (bytes.length !== length) throw new ProtocolError(`a value has ${bytes.length} of ${length} bytes`);
  return bytes;
}

function unsigned(bytes: Buffer): bigint {
  let value = 0n;
  for (let index = bytes.length - 1; index >= 0; index -= 1) value = (value << 8n) | BigInt(bytes[index] ?? 0);
  return value;
}

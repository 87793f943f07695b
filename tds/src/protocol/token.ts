import type { TsqlType, Value } from "../types/tsql-type.ts";
import type { ByteWriter } from "./byte-writer.ts";
import type { WireFormat } from "./tds-version.ts";
import { wireType, writeTypeInfo } from "./type-info.ts";
import { writeValue } from "./type-value.ts";

/** Tokens of responses (MS-TDS 2.2.7). */
export const tokens = {
  returnStatus: 0x79,
  colMetadata: 0x81,
  error: 0xaa,
  info: 0xab,
  returnValue: 0xac,
  loginAck: 0xad,
  row: 0xd1,
  nbcRow: 0xd2,
  envChange: 0xe3,
  done: 0xfd,
  doneProc: 0xfe,
  doneInProc: 0xff,
} as const;

export const doneStatus = {
  final: 0x00,
  more: 0x01,
  error: 0x02,
  inTransaction: 0x04,
  count: 0x10,
  attention: 0x20,
  serverError: 0x100,
} as const;

/** Values of CurCmd, by the kind of a statement. */
export const commands = { none: 0, select: 0xc1, insert: 0xc3, delete: 0xc4, update: 0xc5, merge: 0x117 } as const;

export interface ServerMessage {
  readonly number: number;
  readonly state: number;
  readonly severity: number;
  readonly message: string;
  readonly procedure?: string | undefined;
  readonly line: number;
}

export interface Column {
  readonly name: string;
  readonly type: TsqlType;
  readonly isNullable: boolean;
  readonly isIdentity?: boolean;
  readonly isComputed?: boolean;
}

const serverName = "holdfast";

/** Writes a message: as ERROR for a severity above 10, otherwise as INFO. */
export function writeMessage(writer: ByteWriter, { has72 }: WireFormat, message: ServerMessage): void {
  const { number, state, severity, message: text, procedure = "", line } = message;
  const cut = text.slice(0, 4_000);
  const procedureName = procedure.slice(0, 255);
  const texts = 2 + 1 + 1 + (cut.length + serverName.length + procedureName.length) * 2;
  const length = 6 + texts + (has72 ? 4 : 2);
  writer.uint8(severity > 10 ? tokens.error : tokens.info).uint16(length);
  writer.int32(number).uint8(state).uint8(severity);
  writer.shortVarchar(cut).byteVarchar(serverName).byteVarchar(procedureName);
  if (has72) writer.uint32(line);
  else writer.uint16(line);
}

type DoneToken = typeof tokens.done | typeof tokens.doneProc | typeof tokens.doneInProc;

export function writeDone(
  writer: ByteWriter,
  { has72 }: WireFormat,
  token: DoneToken,
  done: { readonly status: number; readonly command?: number; readonly rowCount?: number },
): void {
  writer
    .uint8(token)
    .uint16(done.status)
    .uint16(done.command ?? commands.none);
  if (has72) writer.uint64(BigInt(done.rowCount ?? 0));
  else writer.uint32(done.rowCount ?? 0);
}

const nullable = 0x01;
const identity = 0x10;
const computed = 0x20;

export function writeColMetadata(writer: ByteWriter, format: WireFormat, columns: readonly Column[]): void {
  writer.uint8(tokens.colMetadata).uint16(columns.length);
  for (const column of columns) {
    const flags =
      (column.isNullable ? nullable : 0) | (column.isIdentity ? identity : 0) | (column.isComputed ? computed : 0);
    const type = wireType(column.type, format);
    writeTypeHead(writer, format, flags, type);
    if (type.name === "text" || type.name === "ntext" || type.name === "image") {
      if (format.has72) writer.uint8(0);
      else writer.uint16(0);
    }
    writer.byteVarchar(column.name);
  }
}

function writeTypeHead(writer: ByteWriter, { has72 }: WireFormat, flags: number, type: TsqlType): void {
  if (has72) writer.uint32(0);
  else writer.uint16(0);
  writer.uint16(flags);
  writeTypeInfo(writer, type);
}

/** Writes a row, as NBCROW if that is shorter: it has one bit for each NULL. */
/** Writes a row, or nothing if a value does not fit its type. */
export function writeRow(
  writer: ByteWriter,
  format: WireFormat,
  columns: readonly Column[],
  row: readonly Value[],
): void {
  writer.atomically(() => writeValues(writer, format, columns, row));
}

function writeValues(writer: ByteWriter, format: WireFormat, columns: readonly Column[], row: readonly Value[]): void {
  const hasNull = format.has73 && row.includes(null);
  writer.uint8(hasNull ? tokens.nbcRow : tokens.row);
  if (hasNull) {
    const bitmap = Buffer.alloc(Math.ceil(columns.length / 8));
    for (const [index, value] of row.entries())
      if (value === null) bitmap[index >> 3] = (bitmap[index >> 3] ?? 0) | (1 << (index & 7));
    writer.bytes(bitmap);
  }
  for (const [index, column] of columns.entries()) {
    const value = row[index] ?? null;
    if (value !== null || !hasNull) writeValue(writer, wireType(column.type, format), value);
  }
}

export function writeReturnStatus(writer: ByteWriter, status: number): void {
  writer.uint8(tokens.returnStatus).int32(status);
}

export interface ReturnValue {
  readonly ordinal: number;
  readonly name: string;
  readonly type: TsqlType;
  readonly value: Value;
}

export function writeReturnValue(writer: ByteWriter, format: WireFormat, value: ReturnValue): void {
  const outputParameter = 0x01;
  const type = wireType(value.type, format);
  writer.uint8(tokens.returnValue).uint16(value.ordinal).byteVarchar(value.name).uint8(outputParameter);
  writeTypeHead(writer, format, nullable, type);
  // The legacy text types have the same layout here as in a column.
  writeValue(writer, type, value.value);
}

export function writeLoginAck(
  writer: ByteWriter,
  version: number,
  program: { readonly name: string; readonly version: readonly [number, number, number] },
): void {
  const [major, minor, build] = program.version;
  writer.uint8(tokens.loginAck).uint16(1 + 4 + 1 + program.name.length * 2 + 4);
  writer.uint8(1);
  writer
    .uint8(version >>> 24)
    .uint8((version >>> 16) & 0xff)
    .uint8((version >>> 8) & 0xff)
    .uint8(version & 0xff);
  writer.byteVarchar(program.name).uint8(major).uint8(minor);
  writer.uint8(build >> 8).uint8(build & 0xff);
}

/** Types of ENVCHANGE (MS-TDS 2.2.7.9). */
const environment = {
  database: 1,
  language: 2,
  packetSize: 4,
  collation: 7,
  beginTransaction: 8,
  commitTransaction: 9,
  rollbackTransaction: 10,
  resetConnection: 18,
} as const;

export function writeTextChange(
  writer: ByteWriter,
  type: "database" | "language" | "packetSize",
  current: string,
  previous: string,
): void {
  writer.uint8(tokens.envChange).uint16(3 + (current.length + previous.length) * 2);
  writer.uint8(environment[type]).byteVarchar(current).byteVarchar(previous);
}

export function writeCollationChange(writer: ByteWriter, { collation }: WireFormat): void {
  writer.uint8(tokens.envChange).uint16(3 + collation.wire.length);
  writer.uint8(environment.collation).byteVarbyte(collation.wire).uint8(0);
}

export function writeTransactionChange(
  writer: ByteWriter,
  type: "beginTransaction" | "commitTransaction" | "rollbackTransaction",
  descriptor: bigint,
): void {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(descriptor);
  writer.uint8(tokens.envChange).uint16(11).uint8(environment[type]);
  if (type === "beginTransaction") writer.byteVarbyte(bytes).uint8(0);
  else writer.uint8(0).byteVarbyte(bytes);
}

export function writeResetConnection(writer: ByteWriter): void {
  writer.uint8(tokens.envChange).uint16(3).uint8(environment.resetConnection).uint8(0).uint8(0);
}

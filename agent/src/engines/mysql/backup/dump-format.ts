import { createByteReader } from "@holdfast/common/sealed/byte-reader.ts";

/*
 * A dump is a stream of definitions, one JSON document, and streams of rows. docs/reference/backup-format.md describes
 * both. Statements are strings with one character per byte, as a ByteSession runs them; names are plain strings.
 */

export const definitionsStream = "definitions.json";
/** Name of a stream of rows, from 1 on. */
export const rowsStream = (number: number): string => `rows-${number}`;
export const isRowsStream = (name: string): boolean => /^rows-\d+$/.test(name);

export const definitionsFormat = "holdfast mysql dump 1";

export interface Definitions {
  readonly format: typeof definitionsFormat;
  readonly version: string;
  /** Transactions in the dump; empty if it was taken without a lock. */
  readonly gtids: string;
  /** Position in the binary log; absent without one, and in dumps of older releases. */
  readonly log?: Omit<DumpPosition, "gtids">;
  readonly databases: readonly DatabaseDefinition[];
  readonly tables: readonly TableDefinition[];
  /** Views, routines, triggers and events. */
  readonly programs: readonly ProgramDefinition[];
  readonly accounts: readonly AccountDefinition[];
  /** The platform's records of databases that it created. */
  readonly marks: readonly { readonly name: string; readonly owner: string; readonly mark: string }[];
}

/** Position of a dump in the binary log. */
export interface DumpPosition {
  readonly gtids: string;
  readonly branch: string;
  /** Beginning of the file that has the position. */
  readonly from: string;
  readonly position: string;
}

export interface DatabaseDefinition {
  readonly name: string;
  readonly sql: string;
  readonly collation: string;
  readonly isReadOnly: boolean;
}

export interface TableDefinition {
  readonly database: string;
  readonly name: string;
  readonly sql: string;
  /** Columns that are not generated, in the order of the values. */
  readonly columns: readonly string[];
  /** False if the rows were read without a snapshot; absent in dumps of older releases. */
  readonly isTransactional?: boolean;
}

export type ProgramKind = "view" | "procedure" | "function" | "trigger" | "event";

export interface ProgramDefinition {
  readonly kind: ProgramKind;
  readonly database: string;
  readonly name: string;
  readonly sql: string;
  /** Variables of the session that created it. */
  readonly settings: Readonly<Record<string, string>>;
  /** Collation of the database when it was created; empty for views. */
  readonly databaseCollation: string;
  /** True for an event that runs. */
  readonly isEnabled: boolean;
  /** True for an event that runs on the primary only, as this engine received it. */
  readonly isReplicaDisabled?: true;
}

export interface AccountDefinition {
  readonly name: string;
  readonly host: string;
  /** Statement that creates the account, without its default roles. */
  readonly sql: string;
  readonly grants: readonly string[];
  /** Default roles as they are in a statement, such as `` `reporting`@`%` ``. */
  readonly defaultRoles: readonly string[];
  /** True for a role, or an account that cannot sign in. */
  readonly isLocked: boolean;
}

/** Rows of one table as the values of an INSERT. */
export interface RowFrame {
  /** Index of the table in the definitions. */
  readonly table: number;
  readonly rows: number;
  /** `(1,'a'),(2,'b')`. */
  readonly values: Buffer;
}

/** Numbers of rows by table, which end each stream of rows. */
export type RowCounts = ReadonlyMap<number, number>;

/** Table, number of rows and number of bytes, big-endian. */
const headerBytes = 12;
const endMark = 0xff_ff_ff_ff;

export function frameOf(table: number, rows: number, values: string): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + values.length);
  writeHeader(frame, table, rows, values.length);
  frame.write(values, headerBytes, "latin1");
  return frame;
}

/** The beginning of a frame, before its values, which have this number of bytes. */
export function frameHeader(table: number, rows: number, bytes: number): Buffer {
  const header = Buffer.allocUnsafe(headerBytes);
  writeHeader(header, table, rows, bytes);
  return header;
}

export function endFrame(counts: RowCounts): Buffer {
  const text = Buffer.from(JSON.stringify([...counts]));
  const frame = Buffer.allocUnsafe(headerBytes + text.length);
  writeHeader(frame, endMark, counts.size, text.length);
  text.copy(frame, headerBytes);
  return frame;
}

function writeHeader(frame: Buffer, table: number, rows: number, bytes: number): void {
  frame.writeUInt32BE(table, 0);
  frame.writeUInt32BE(rows, 4);
  frame.writeUInt32BE(bytes, 8);
}

/** Frames of a stream of rows; returns the counts at its end. Throws if the stream ends early or has bytes after it. */
export async function* readFrames(source: AsyncIterable<Uint8Array>): AsyncGenerator<RowFrame, RowCounts> {
  const reader = createByteReader(source);
  for (;;) {
    const header = await reader.take(headerBytes);
    const table = header.readUInt32BE(0);
    // Unlike `take`, this has one copy of a large row in memory.
    const values = Buffer.allocUnsafe(header.readUInt32BE(8));
    if ((await reader.fill(values)) < values.length) throw new Error("the stream ends too early");
    if (table === endMark) {
      if ((await reader.takeUpTo(1)).length > 0) throw new Error("the stream of rows has bytes after its end");
      return new Map(JSON.parse(values.toString()) as [number, number][]);
    }
    yield { table, rows: header.readUInt32BE(4), values };
  }
}

export function parseDefinitions(text: string): Definitions {
  const found = JSON.parse(text) as Definitions;
  if (found.format !== definitionsFormat)
    throw new Error(`a dump of the format ${String(found.format)} is not supported`);
  return found;
}

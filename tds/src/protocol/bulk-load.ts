import type { Value } from "../types/tsql-type.ts";
import { ByteReader, EndOfBytes } from "./byte-reader.ts";
import { ProtocolError } from "./protocol-error.ts";
import type { WireFormat } from "./tds-version.ts";
import { tokens } from "./token.ts";
import { readTypeInfo, type SentType } from "./type-info.ts";
import { readValue } from "./type-value.ts";

export interface BulkColumn {
  readonly name: string;
  readonly sent: SentType;
}

/** Max bytes of one row. */
const rowBytesMax = 64 << 20;
const columnsMax = 1_024;
const textPointerBytes = 16;
const timestampBytes = 8;

/** Decodes the message of a bulk load (MS-TDS 2.2.6.1): COLMETADATA, then a ROW or NBCROW for each row, then DONE. */
export class BulkReader {
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  /** A row is read again when as many bytes arrived, so that the cost of a long row is linear in its length. */
  #neededBytes = 1;
  #hasEnded = false;
  /** Undefined before the first complete token. */
  columns: readonly BulkColumn[] | undefined;
  readonly #format: WireFormat;

  constructor(format: WireFormat) {
    this.#format = format;
  }

  /** The rows that this piece of the message completes. */
  read(piece: Buffer): Value[][] {
    this.#pending.push(piece);
    this.#pendingBytes += piece.length;
    return this.#pendingBytes < this.#neededBytes ? [] : this.#readTokens();
  }

  /** The last rows; a ProtocolError if the message ends inside one. */
  end(): Value[][] {
    const rows = this.#readTokens();
    if (this.#pendingBytes > 0 || this.columns === undefined)
      throw new ProtocolError("a bulk load ends inside a row or without columns");
    return rows;
  }

  #readTokens(): Value[][] {
    const bytes = this.#pending.length === 1 ? (this.#pending[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#pending);
    const reader = new ByteReader(bytes);
    const rows: Value[][] = [];
    let complete = 0;
    try {
      while (reader.remaining > 0) {
        const row = this.#readToken(reader);
        if (row !== undefined) rows.push(row);
        complete = reader.offset;
      }
    } catch (error) {
      if (!(error instanceof EndOfBytes)) throw error;
    }
    const remainder = bytes.subarray(complete);
    if (remainder.length > rowBytesMax) throw new ProtocolError(`a row is longer than ${rowBytesMax} bytes`);
    this.#pending = remainder.length === 0 ? [] : [Buffer.from(remainder)];
    this.#pendingBytes = remainder.length;
    this.#neededBytes = Math.max(1, Math.min(rowBytesMax + 1, 2 * remainder.length));
    return rows;
  }

  #readToken(reader: ByteReader): Value[] | undefined {
    if (this.#hasEnded) throw new ProtocolError("bytes follow the end of a bulk load");
    const token = reader.uint8();
    switch (token) {
      case tokens.colMetadata:
        if (this.columns !== undefined) throw new ProtocolError("a bulk load describes its columns twice");
        this.columns = this.#readColumns(reader);
        return undefined;
      case tokens.row:
      case tokens.nbcRow:
        return this.#readRow(reader, token === tokens.nbcRow);
      case tokens.done:
        reader.bytes(this.#format.has72 ? 12 : 8);
        this.#hasEnded = true;
        return undefined;
      default:
        throw new ProtocolError(`a bulk load has a token of type 0x${token.toString(16)}`);
    }
  }

  #readColumns(reader: ByteReader): BulkColumn[] {
    const count = reader.uint16();
    if (count > columnsMax) throw new ProtocolError(`a bulk load has more than ${columnsMax} columns`);
    return Array.from({ length: count }, () => {
      // User type and flags.
      reader.bytes((this.#format.has72 ? 4 : 2) + 2);
      const sent = readTypeInfo(reader);
      if (sent.layout === "longLength") reader.shortVarchar();
      return { name: reader.byteVarchar(), sent };
    });
  }

  #readRow(reader: ByteReader, hasBitmap: boolean): Value[] {
    const { columns } = this;
    if (columns === undefined) throw new ProtocolError("a bulk load has a row before its columns");
    const bitmap = hasBitmap ? reader.bytes(Math.ceil(columns.length / 8)) : undefined;
    return columns.map(({ sent }, index) => {
      if (((bitmap?.[index >> 3] ?? 0) & (1 << (index & 7))) !== 0) return null;
      if (sent.layout === "longLength") {
        const pointer = reader.uint8();
        if (pointer === 0) return null;
        if (pointer !== textPointerBytes) throw new ProtocolError(`a text pointer has ${pointer} bytes`);
        reader.bytes(textPointerBytes + timestampBytes);
      }
      return readValue(reader, sent);
    });
  }
}

import type { Value } from "../types/tsql-type.ts";
import { ByteReader } from "./byte-reader.ts";
import { ProtocolError } from "./protocol-error.ts";
import { readTypeInfo, type SentType } from "./type-info.ts";
import { readValue, skipValue } from "./type-value.ts";

/** Max rows of one table-valued parameter: all rows are read before the session can be interrupted. */
const tableRowsMax = 1_000_000;
const columnsMax = 1_024;
const noColumns = 0xffff;
/** Flag of a column without values, for which each row has the default. */
const defaultColumn = 0x0200;
const tokens = { end: 0x00, row: 0x01, orderUnique: 0x10, columnOrder: 0x11 } as const;

/** A request with more rows than a parameter may have. The connection remains: the request is complete. */
export class TooManyRows extends ProtocolError {}

/** The value of a table-valued parameter. Its rows are decoded when they are used, so they take no further memory. */
export interface SentTable {
  /** Schema and name of the type, as far as the client sent them. */
  readonly type: readonly string[];
  /** Columns with values; `ordinal` is the position in the type. */
  readonly columns: readonly { readonly ordinal: number; readonly sent: SentType }[];
  /** Number of columns, with those that have the default; undefined for NULL, which is a table without rows. */
  readonly columnCount: number | undefined;
  readonly rowCount: number;
  rows(): Iterable<Value[]>;
}

/** Reads a TVP_TYPE_INFO after its token, and the rows (MS-TDS 2.2.5.5.5). */
export function readTable(reader: ByteReader): SentTable {
  const type = [reader.byteVarchar(), reader.byteVarchar(), reader.byteVarchar()].filter((part) => part !== "");
  const count = reader.uint16();
  const isNull = count === noColumns;
  if (!isNull && count > columnsMax) throw new ProtocolError(`a table has more than ${columnsMax} columns`);
  const columns = isNull ? [] : Array.from({ length: count }, (_, ordinal) => readColumn(reader, ordinal));
  const sent = columns.flatMap(({ column }) => (column === undefined ? [] : [column]));
  for (let token = reader.uint8(); token !== tokens.end; token = reader.uint8()) {
    if (token === tokens.orderUnique) reader.bytes(reader.uint16() * 3);
    else if (token === tokens.columnOrder) reader.bytes(reader.uint16() * 2);
    else throw new ProtocolError(`the columns of a table end with 0x${token.toString(16)}`);
  }
  const start = reader.offset;
  let rowCount = 0;
  for (let token = reader.uint8(); token !== tokens.end; token = reader.uint8()) {
    if (token !== tokens.row || isNull) throw new ProtocolError(`a row of a table begins with 0x${token.toString(16)}`);
    rowCount += 1;
    if (rowCount > tableRowsMax)
      throw new TooManyRows(`a table-valued parameter has more than ${tableRowsMax} rows; send it in parts`);
    for (const column of sent) skipValue(reader, column.sent);
  }
  const bytes = reader.at(start, reader.offset - start);
  return {
    type,
    columns: sent,
    columnCount: isNull ? undefined : count,
    rowCount,
    *rows() {
      const rowReader = new ByteReader(bytes);
      for (let row = 0; row < rowCount; row += 1) {
        rowReader.uint8();
        yield sent.map((column) => readValue(rowReader, column.sent));
      }
    },
  };
}

function readColumn(reader: ByteReader, ordinal: number) {
  // The user type.
  reader.bytes(4);
  const flags = reader.uint16();
  const sent = readTypeInfo(reader);
  reader.byteVarchar();
  return { column: (flags & defaultColumn) === 0 ? { ordinal, sent } : undefined };
}

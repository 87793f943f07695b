import type { TsqlType, Value } from "../types/tsql-type.ts";
import { skipAllHeaders } from "./all-headers.ts";
import { ByteReader } from "./byte-reader.ts";
import { ProtocolError } from "./protocol-error.ts";
import type { WireFormat } from "./tds-version.ts";
import { readTable, type SentTable } from "./table-value.ts";
import { readTypeInfo } from "./type-info.ts";
import { typeTokens } from "./type-token.ts";
import { readValue } from "./type-value.ts";

export interface RpcParameter {
  /** Name with its @; empty for a parameter by position. */
  readonly name: string;
  readonly type: TsqlType;
  readonly value: Value;
  readonly isOutput: boolean;
  readonly isDefault: boolean;
  /** Value of a table-valued parameter; undefined for others. */
  readonly table?: SentTable;
}

export interface RpcCall {
  readonly procedure: string;
  readonly parameters: readonly RpcParameter[];
}

const parametersMax = 2_100;
const callsMax = 10_000;
const numberedProcedure = 0xffff;
const separators = [0x80, 0xff, 0xfe];

/** Procedures that clients call by number (MS-TDS 2.2.6.6). */
const procedures: Readonly<Record<number, string>> = {
  1: "sp_cursor",
  2: "sp_cursoropen",
  3: "sp_cursorprepare",
  4: "sp_cursorexecute",
  5: "sp_cursorprepexec",
  6: "sp_cursorunprepare",
  7: "sp_cursorfetch",
  8: "sp_cursoroption",
  9: "sp_cursorclose",
  10: "sp_executesql",
  11: "sp_prepare",
  12: "sp_execute",
  13: "sp_prepexec",
  14: "sp_prepexecrpc",
  15: "sp_unprepare",
};

/** The calls of one RPC message, in order. */
export function decodeRpcRequest(payload: Buffer, format: WireFormat): RpcCall[] {
  const reader = new ByteReader(payload);
  if (format.has72) skipAllHeaders(reader);
  const calls: RpcCall[] = [];
  while (reader.remaining > 0) {
    if (calls.length >= callsMax) throw new ProtocolError("an RPC message has too many calls");
    calls.push(readCall(reader));
  }
  return calls;
}

function readCall(reader: ByteReader): RpcCall {
  const nameLength = reader.uint16();
  const procedure = nameLength === numberedProcedure ? procedureOf(reader.uint16()) : reader.unicode(nameLength);
  reader.uint16();
  const parameters: RpcParameter[] = [];
  while (reader.remaining > 0) {
    const nameUnits = reader.uint8();
    // Name lengths are at most 128, so these flag values mark the end of the call.
    if (separators.includes(nameUnits)) break;
    if (parameters.length >= parametersMax + 2)
      throw new ProtocolError(`a call has more than ${parametersMax} parameters`);
    const name = reader.unicode(nameUnits);
    const status = reader.uint8();
    const isOutput = (status & 1) !== 0;
    const isDefault = (status & 2) !== 0;
    if (reader.peek() === typeTokens.table) {
      reader.uint8();
      const table = readTable(reader);
      parameters.push({ name, type: { name: "sql_variant" }, value: null, isOutput, isDefault, table });
      continue;
    }
    const sent = readTypeInfo(reader);
    const value = readValue(reader, sent);
    parameters.push({ name, type: sent.type, value, isOutput, isDefault });
  }
  return { procedure, parameters };
}

function procedureOf(number: number): string {
  const name = procedures[number];
  if (name === undefined) throw new ProtocolError(`a call names the procedure ${number}`);
  return name;
}

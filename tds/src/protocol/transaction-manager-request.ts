import { skipAllHeaders } from "./all-headers.ts";
import { ByteReader } from "./byte-reader.ts";
import type { WireFormat } from "./tds-version.ts";

export type IsolationLevel = "read uncommitted" | "read committed" | "repeatable read" | "serializable" | "snapshot";

const levels: Readonly<Record<number, IsolationLevel>> = {
  1: "read uncommitted",
  2: "read committed",
  3: "repeatable read",
  4: "serializable",
  5: "snapshot",
};

interface BeginRequest {
  readonly kind: "begin";
  readonly name: string;
  /** Isolation level; absent for the session's level. */
  readonly isolation: IsolationLevel | undefined;
}

export type TransactionManagerRequest =
  | BeginRequest
  | { readonly kind: "commit" | "rollback"; readonly name: string; readonly next?: BeginRequest }
  | { readonly kind: "save"; readonly name: string }
  /** Distributed transactions, which are refused. */
  | { readonly kind: "distributed" };

const requestTypes = { begin: 5, commit: 7, rollback: 8, save: 9 } as const;

export function decodeTransactionManagerRequest(payload: Buffer, format: WireFormat): TransactionManagerRequest {
  const reader = new ByteReader(payload);
  if (format.has72) skipAllHeaders(reader);
  const type = reader.uint16();
  switch (type) {
    case requestTypes.begin:
      return readBegin(reader);
    case requestTypes.commit:
    case requestTypes.rollback: {
      const kind = type === requestTypes.commit ? "commit" : "rollback";
      const name = readName(reader);
      const beginsNext = reader.remaining > 0 && (reader.uint8() & 1) !== 0;
      return { kind, name, ...(beginsNext && { next: readBegin(reader) }) };
    }
    case requestTypes.save:
      return { kind: "save", name: readName(reader) };
    default:
      return { kind: "distributed" };
  }
}

function readBegin(reader: ByteReader): BeginRequest {
  const isolation = levels[reader.uint8()];
  return { kind: "begin", isolation, name: reader.remaining > 0 ? readName(reader) : "" };
}

/** B_VARBYTE: its length counts bytes. */
function readName(reader: ByteReader): string {
  return reader.bytes(reader.uint8()).toString("utf16le");
}

import { skipAllHeaders } from "./all-headers.ts";
import { ByteReader } from "./byte-reader.ts";
import type { WireFormat } from "./tds-version.ts";

/** Decodes the text of an SQL batch message. */
export function decodeSqlBatch(payload: Buffer, format: WireFormat): string {
  const reader = new ByteReader(payload);
  if (format.has72) skipAllHeaders(reader);
  return reader.unicode(Math.floor(reader.remaining / 2));
}

import type { ByteReader } from "./byte-reader.ts";
import { ProtocolError } from "./protocol-error.ts";

const headersMax = 4_096;

/** Skips ALL_HEADERS (MS-TDS 2.2.5.3): the session has one transaction, so its descriptor decides nothing. */
export function skipAllHeaders(reader: ByteReader): void {
  const length = reader.uint32();
  if (length < 4 || length > headersMax) throw new ProtocolError(`the headers of a request have ${length} bytes`);
  reader.bytes(length - 4);
}

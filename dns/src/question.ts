/** The question of a query, parsed by hand so that it can be returned byte for byte. */
export interface Question {
  /** Name in the client's letter case; undefined if a label is not plain ASCII. */
  readonly name: string | undefined;
  readonly type: number;
  readonly class: number;
  /** Bytes of the question section, which preserve the client's letter case (DNS 0x20). */
  readonly bytes: Buffer;
}

const headerBytes = 12;

/** Parses the only question after the header. Undefined if it is malformed (RFC 1035 section 4.1.2). */
export function readQuestion(query: Buffer): Question | undefined {
  const labels: string[] = [];
  let plain = true;
  let at = headerBytes;
  for (;;) {
    const length = query[at];
    // A compression pointer is invalid in the first name of a packet.
    if (length === undefined || length > 63) return undefined;
    at += 1;
    if (length === 0) break;
    const label = query.subarray(at, at + length);
    if (label.byteLength < length || at + length - headerBytes > 254) return undefined;
    if (!isPlain(label)) plain = false;
    labels.push(label.toString("latin1"));
    at += length;
  }
  if (at + 4 > query.byteLength) return undefined;
  return {
    name: plain ? labels.join(".") : undefined,
    type: query.readUInt16BE(at),
    class: query.readUInt16BE(at + 2),
    bytes: query.subarray(headerBytes, at + 4),
  };
}

/** True if the label is printable ASCII without dots and backslashes. */
function isPlain(label: Buffer): boolean {
  return label.every((byte) => byte > 0x20 && byte < 0x7f && byte !== 0x2e && byte !== 0x5c);
}

/** The question of a query, read from the bytes themselves so that it can be given back exactly. */
export interface Question {
  /** As the client wrote it, upper and lower case kept; undefined when a label is not plain ASCII text. */
  readonly name: string | undefined;
  readonly type: number;
  readonly class: number;
  /** The question section: 0x20 of the client comes back as it was. */
  readonly bytes: Buffer;
}

const headerBytes = 12;

/** Reads the one question after the header. Undefined for anything malformed (RFC 1035, section 4.1.2). */
export function readQuestion(query: Buffer): Question | undefined {
  const labels: string[] = [];
  let plain = true;
  let at = headerBytes;
  for (;;) {
    const length = query[at];
    // A pointer has nothing to point back to in the first name of a packet.
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

/** Could this label be text in a name with dots between labels? */
function isPlain(label: Buffer): boolean {
  return label.every((byte) => byte > 0x20 && byte < 0x7f && byte !== 0x2e && byte !== 0x5c);
}

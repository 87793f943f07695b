/** Opcodes of MongoDB's wire protocol that the front end knows. */
export const opCodes = { reply: 1, query: 2_004, msg: 2_013 } as const;

/** Bytes of the header of a message. */
export const headerBytes = 16;

/** Max bytes of a message with its header, as FerretDB reports it in greetings. */
export const messageBytesMax = 48_000_000;

/** Header of a message: its length includes the header. */
export interface Header {
  readonly length: number;
  readonly requestId: number;
  readonly responseTo: number;
  readonly opCode: number;
}

/** `bytes` are the first 16 bytes of a message. */
export function readHeader(bytes: Buffer): Header {
  return {
    length: bytes.readInt32LE(0),
    requestId: bytes.readInt32LE(4),
    responseTo: bytes.readInt32LE(8),
    opCode: bytes.readInt32LE(12),
  };
}

/** A complete message. */
export function writeMessage(header: Omit<Header, "length">, body: Uint8Array): Buffer {
  const bytes = Buffer.alloc(headerBytes + body.length);
  bytes.writeInt32LE(bytes.length, 0);
  bytes.writeInt32LE(header.requestId, 4);
  bytes.writeInt32LE(header.responseTo, 8);
  bytes.writeInt32LE(header.opCode, 12);
  bytes.set(body, headerBytes);
  return bytes;
}

/** A message that breaks the protocol: its connection ends. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

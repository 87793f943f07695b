import { ProtocolError } from "./protocol-error.ts";

/** A field continues after the bytes that a reader has. */
export class EndOfBytes extends ProtocolError {}

/** Reads the little-endian fields of one message. A field beyond its end is a ProtocolError. */
export class ByteReader {
  #offset = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get offset(): number {
    return this.#offset;
  }

  get remaining(): number {
    return this.#bytes.length - this.#offset;
  }

  /** Returns a view, not a copy. The length is checked before anything of that size is allocated. */
  bytes(length: number): Buffer {
    if (length < 0) throw new ProtocolError(`a field at ${this.#offset} has a length of ${length}`);
    if (length > this.remaining)
      throw new EndOfBytes(`a field of ${length} bytes at ${this.#offset} is longer than its message`);
    this.#offset += length;
    return this.#bytes.subarray(this.#offset - length, this.#offset);
  }

  /** The next byte, which stays unread; undefined at the end. */
  peek(): number | undefined {
    return this.#bytes[this.#offset];
  }

  uint8(): number {
    return this.bytes(1).readUInt8();
  }

  uint16(): number {
    return this.bytes(2).readUInt16LE();
  }

  uint16BigEndian(): number {
    return this.bytes(2).readUInt16BE();
  }

  int32(): number {
    return this.bytes(4).readInt32LE();
  }

  uint32(): number {
    return this.bytes(4).readUInt32LE();
  }

  uint64(): bigint {
    return this.bytes(8).readBigUInt64LE();
  }

  /** UTF-16 of a number of code units. */
  unicode(codeUnits: number): string {
    return this.bytes(codeUnits * 2).toString("utf16le");
  }

  /** B_VARCHAR: one byte of length in code units. */
  byteVarchar(): string {
    return this.unicode(this.uint8());
  }

  /** US_VARCHAR: two bytes of length in code units. */
  shortVarchar(): string {
    return this.unicode(this.uint16());
  }

  /** A reader of a region of the same message, such as the data that an offset of LOGIN7 names. */
  at(offset: number, length: number): Buffer {
    if (offset + length > this.#bytes.length)
      throw new ProtocolError(`a field of ${length} bytes at ${offset} is longer than its message`);
    return this.#bytes.subarray(offset, offset + length);
  }
}

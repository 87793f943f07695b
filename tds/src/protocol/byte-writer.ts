/** Writes little-endian fields into a buffer that grows. */
export class ByteWriter {
  #bytes: Buffer;
  #length = 0;

  constructor(capacity = 256) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  get length(): number {
    return this.#length;
  }

  /** Removes and returns the bytes that were written. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#bytes = Buffer.allocUnsafe(256);
    this.#length = 0;
    return taken;
  }

  /** Runs a function that writes; nothing of it remains if it throws. */
  atomically(write: () => void): void {
    const length = this.#length;
    try {
      write();
    } catch (error) {
      this.#length = length;
      throw error;
    }
  }

  uint8(value: number): this {
    const at = this.#extend(1);
    this.#bytes[at] = value;
    return this;
  }

  uint16(value: number): this {
    const at = this.#extend(2);
    this.#bytes.writeUInt16LE(value & 0xffff, at);
    return this;
  }

  uint32(value: number): this {
    const at = this.#extend(4);
    this.#bytes.writeUInt32LE(value >>> 0, at);
    return this;
  }

  int32(value: number): this {
    const at = this.#extend(4);
    this.#bytes.writeInt32LE(value, at);
    return this;
  }

  uint64(value: bigint): this {
    const at = this.#extend(8);
    this.#bytes.writeBigUInt64LE(BigInt.asUintN(64, value), at);
    return this;
  }

  /** An unsigned integer of up to 16 bytes. */
  unsigned(value: bigint, length: number): this {
    let remainder = value;
    for (let index = 0; index < length; index += 1) {
      this.uint8(Number(remainder & 0xffn));
      remainder >>= 8n;
    }
    return this;
  }

  bytes(value: Uint8Array): this {
    const at = this.#extend(value.length);
    this.#bytes.set(value, at);
    return this;
  }

  unicode(value: string): this {
    return this.bytes(Buffer.from(value, "utf16le"));
  }

  /** B_VARCHAR, cut to 255 code units. */
  byteVarchar(value: string): this {
    const cut = value.slice(0, 255);
    return this.uint8(cut.length).unicode(cut);
  }

  /** US_VARCHAR, cut to a length that a token with further fields can have. */
  shortVarchar(value: string): this {
    const cut = value.slice(0, 4_000);
    return this.uint16(cut.length).unicode(cut);
  }

  /** B_VARBYTE. */
  byteVarbyte(value: Uint8Array): this {
    return this.uint8(value.length).bytes(value);
  }

  #extend(length: number): number {
    const at = this.#length;
    const needed = at + length;
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(grown, 0, 0, at);
      this.#bytes = grown;
    }
    this.#length = needed;
    return at;
  }
}

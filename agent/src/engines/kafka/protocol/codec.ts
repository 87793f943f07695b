import { lookUp } from "@holdfast/common/look-up.ts";

/**
 * Types of Kafka's protocol in its flexible encoding (KIP-482): lengths are varints plus one, 0 stands for null, and
 * each structure ends with tagged fields, which are skipped.
 */
export interface Codec<T> {
  write(to: Writer, value: T): void;
  read(from: Reader): T;
}

export type Of<C> = C extends Codec<infer T> ? T : never;

/** Bytes of a request. */
export class Writer {
  readonly #parts: Buffer[] = [];

  add(bytes: Buffer): void {
    this.#parts.push(bytes);
  }

  varint(value: number): void {
    const bytes: number[] = [];
    for (let rest = value; ; rest = Math.floor(rest / 128)) {
      if (rest < 128) {
        bytes.push(rest);
        break;
      }
      bytes.push((rest % 128) | 0x80);
    }
    this.add(Buffer.from(bytes));
  }

  bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

/** Bytes of a response. Throws RangeError behind its end. */
export class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  take(length: number): Buffer {
    const end = this.#at + length;
    if (length < 0 || end > this.#bytes.length) throw new RangeError("the response of the broker is incomplete");
    const part = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return part;
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.take(1)[0] ?? 0;
      value += (byte & 0x7f) * scale;
      if (byte < 128) return value;
    }
  }

  skipTags(): void {
    for (let count = this.varint(); count > 0; count -= 1) {
      this.varint();
      this.take(this.varint());
    }
  }
}

function fixed<T>(size: number, set: (bytes: Buffer, value: T) => unknown, get: (bytes: Buffer) => T): Codec<T> {
  return {
    write(to, value) {
      const bytes = Buffer.alloc(size);
      set(bytes, value);
      to.add(bytes);
    },
    read: (from) => get(from.take(size)),
  };
}

export const int8 = fixed<number>(
  1,
  (bytes, value) => bytes.writeInt8(value),
  (bytes) => bytes.readInt8(),
);
export const int16 = fixed<number>(
  2,
  (bytes, value) => bytes.writeInt16BE(value),
  (bytes) => bytes.readInt16BE(),
);
export const int32 = fixed<number>(
  4,
  (bytes, value) => bytes.writeInt32BE(value),
  (bytes) => bytes.readInt32BE(),
);
export const uint16 = fixed<number>(
  2,
  (bytes, value) => bytes.writeUInt16BE(value),
  (bytes) => bytes.readUInt16BE(),
);
/** Offsets, times and sizes, which are exact below 2^53. */
export const int64 = fixed<number>(
  8,
  (bytes, value) => bytes.writeBigInt64BE(BigInt(value)),
  (bytes) => Number(bytes.readBigInt64BE()),
);
export const bool = fixed<boolean>(
  1,
  (bytes, value) => bytes.writeInt8(value ? 1 : 0),
  (bytes) => bytes.readInt8() !== 0,
);
/** A UUID in the text that Kafka prints: base64url without padding. */
export const uuid = fixed<string>(
  16,
  (bytes, value) => Buffer.from(value, "base64url").copy(bytes),
  (bytes) => bytes.toString("base64url"),
);

export const nullableBytes: Codec<Buffer | null> = {
  write(to, value) {
    to.varint(value === null ? 0 : value.length + 1);
    if (value !== null) to.add(value);
  },
  read(from) {
    const length = from.varint();
    return length === 0 ? null : from.take(length - 1);
  },
};

export const bytes: Codec<Buffer> = {
  write: (to, value) => nullableBytes.write(to, value),
  read: (from) => nullableBytes.read(from) ?? Buffer.alloc(0),
};

export const nullableString: Codec<string | null> = {
  write: (to, value) => nullableBytes.write(to, value === null ? null : Buffer.from(value)),
  read: (from) => nullableBytes.read(from)?.toString("utf8") ?? null,
};

export const string: Codec<string> = {
  write: (to, value) => nullableString.write(to, value),
  read: (from) => nullableString.read(from) ?? "",
};

export function nullableArray<T>(element: Codec<T>): Codec<readonly T[] | null> {
  return {
    write(to, value) {
      to.varint(value === null ? 0 : value.length + 1);
      for (const each of value ?? []) element.write(to, each);
    },
    read(from) {
      const length = from.varint();
      if (length === 0) return null;
      const values: T[] = [];
      while (values.length < length - 1) values.push(element.read(from));
      return values;
    },
  };
}

export function array<T>(element: Codec<T>): Codec<readonly T[]> {
  const nullable = nullableArray(element);
  return { write: (to, value) => nullable.write(to, value), read: (from) => nullable.read(from) ?? [] };
}

type Fields = Readonly<Record<string, Codec<unknown>>>;
export type Struct<F extends Fields> = { readonly [K in keyof F]: Of<F[K]> };

/** Fields in the order of the protocol. */
export function struct<F extends Fields>(fields: F): Codec<Struct<F>> {
  const entries = Object.entries(fields);
  return {
    write(to, value) {
      for (const [name, codec] of entries) codec.write(to, lookUp(value, name));
      to.varint(0);
    },
    read(from) {
      const value = Object.fromEntries(entries.map(([name, codec]) => [name, codec.read(from)]));
      from.skipTags();
      return value as Struct<F>;
    },
  };
}

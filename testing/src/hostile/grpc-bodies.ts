import { gzipSync } from "node:zlib";
import { type DescMessage, ScalarType } from "@bufbuild/protobuf";

/** An invalid body of binary gRPC: of a size over the limit, or of a permitted size with invalid content. */
export interface HostileBody {
  readonly what: string;
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

const fieldOf = (no: number, wireType: number): Buffer => varint((no << 3) | wireType);

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) + 128);
  }
}

/** A message as gRPC frames it, with its true length or another one. */
export function framed(message: Buffer, { flags = 0, length = message.length } = {}): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(length >>> 0, 1);
  return Buffer.concat([head, message]);
}

/** Pseudo-random bytes, identical in each run. */
function noise(bytes: number): Buffer {
  let state = 0x2545f491;
  return Buffer.from(
    Array.from({ length: bytes }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
      return state >>> 24;
    }),
  );
}

function repeated(entry: Buffer, bytes: number): Buffer {
  return Buffer.alloc(Math.floor(bytes / entry.length) * entry.length, entry);
}

const bomb = framed(gzipSync(Buffer.alloc(64 << 20)), { flags: 1 });

/** Size of bodies for methods that accept more: a larger body finds no other faults, and takes long. */
export const triedBytes = 256 << 10;

/** Hostile bodies for a method; `most` is its limit in bytes. */
export function hostileBodies(input: DescMessage, most: number): readonly HostileBody[] {
  const bytes = Math.min(most, triedBytes);
  const lists = input.fields
    .filter(({ fieldKind }) => fieldKind === "list" || fieldKind === "map")
    .map((list) => ({
      what: `longest ${list.name}`,
      body: framed(repeated(Buffer.concat([fieldOf(list.number, 2), varint(0)]), bytes)),
    }));
  const nested = input.fields
    .filter(({ message }) => message !== undefined)
    .map((field) => {
      // Each level declares that it contains the rest.
      const levels: Buffer[] = [];
      for (let inner = 0; inner < bytes - 16; ) {
        const level = Buffer.concat([fieldOf(field.number, 2), varint(inner)]);
        levels.push(level);
        inner += level.length;
      }
      return { what: `deepest ${field.name}`, body: framed(Buffer.concat(levels.reverse())) };
    });
  const repeats = input.fields
    .filter(({ fieldKind, scalar }) => fieldKind === "scalar" && scalar === ScalarType.STRING)
    .slice(0, 1)
    .map((field) => ({
      what: `${field.name} over and over`,
      body: framed(repeated(Buffer.concat([fieldOf(field.number, 2), varint(0)]), bytes)),
    }));
  return [
    { what: "more than the method's limit", body: framed(Buffer.alloc(bytes + 1), { length: most + 1 }) },
    { what: "a length of 4 GiB", body: framed(Buffer.alloc(10), { length: 0xffffffff }) },
    { what: "noise", body: framed(noise(bytes)) },
    { what: "groups in groups", body: framed(repeated(fieldOf(15, 3), bytes)) },
    { what: "most unknown fields", body: framed(repeated(Buffer.concat([fieldOf(1_000, 0), varint(1)]), bytes)) },
    { what: "a varint without an end", body: framed(Buffer.alloc(bytes, 0xff)) },
    { what: "two messages", body: Buffer.concat([framed(Buffer.alloc(0)), framed(Buffer.alloc(0))]) },
    { what: "no message", body: Buffer.alloc(0) },
    { what: "half a frame", body: Buffer.alloc(3) },
    { what: "unknown flags", body: framed(Buffer.alloc(0), { flags: 0xfc }) },
    {
      what: "64 MiB of zeros in 64 KiB",
      body: bomb,
      headers: { "grpc-encoding": "gzip" },
    },
    {
      what: "an unknown compression",
      body: framed(noise(100), { flags: 1 }),
      headers: { "grpc-encoding": "z".repeat(4_000) },
    },
    { what: "a time-out that is none", body: framed(Buffer.alloc(0)), headers: { "grpc-timeout": "9".repeat(4_000) } },
    ...lists,
    ...repeats,
    ...nested,
  ];
}

import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";
import { pipeline, Readable, type Transform } from "node:stream";
import { lookUp } from "../look-up.ts";
import { createByteReader } from "./byte-reader.ts";

/**
 * An encrypted, authenticated stream: `HFSS1`, the header's length (4 bytes) and JSON, then frames. A frame is a length
 * (4 bytes, whose highest bit marks the last frame) and AES-256-GCM ciphertext with its tag. Each stream has its own
 * key, derived from a random salt in the header, so the nonce is the frame's number. Header, frame number and
 * last-frame mark are authenticated: changed, reordered, truncated or added frames are rejected.
 * docs/reference/backup-format.md describes the format for other readers.
 */
export interface SealedHeader {
  /** Type of the stream, such as "holdfast control plane 1". */
  readonly format: string;
  /** Version of the key from which the stream's key is derived. */
  readonly keyVersion: string;
  /** Additional labels that identify the stream, such as the name of its object. */
  readonly [label: string]: string | number;
}

/** Returns the 32 bytes from which the stream's key is derived. */
type KeyOf = (keyVersion: string) => Uint8Array;

const magic = Buffer.from("HFSS1");
const frameBytes = 64 * 1024;
const tagBytes = 16;
const lastMark = 0x8000_0000;
const maxHeaderBytes = 4_096;

export async function* sealStream(
  plain: AsyncIterable<Uint8Array>,
  header: SealedHeader,
  keyOf: KeyOf,
  random: (bytes: number) => Buffer = randomBytes,
): AsyncGenerator<Buffer> {
  const salt = random(32);
  const head = Buffer.from(JSON.stringify({ ...header, salt: salt.toString("base64") }));
  yield Buffer.concat([magic, lengthOf(head.length), head]);
  const key = streamKey(keyOf(header.keyVersion), salt);
  const reader = createByteReader(plain);
  let frame = await reader.takeUpTo(frameBytes);
  for (let number = 0; ; number += 1) {
    const next = await reader.takeUpTo(frameBytes);
    const last = next.length === 0;
    const cipher = createCipheriv("aes-256-gcm", key, nonceOf(number));
    cipher.setAAD(associated(head, last));
    const text = [cipher.update(frame), cipher.final()];
    const length = lengthOf(frame.length + tagBytes + (last ? lastMark : 0));
    yield Buffer.concat([length, ...text, cipher.getAuthTag()]);
    if (last) return;
    frame = next;
  }
}

/**
 * Decrypts a stream. Throws at the first frame that is not authentic; all bytes before it are from complete, authentic
 * frames. The header must contain all expected labels, so a stream stored under another name is rejected.
 */
export async function* openStream(
  sealed: AsyncIterable<Uint8Array>,
  expected: Readonly<Record<string, string | number>> & { readonly format: string },
  keyOf: KeyOf,
): AsyncGenerator<Buffer> {
  const reader = createByteReader(sealed);
  if (!(await reader.take(magic.length)).equals(magic)) throw new Error("not a sealed stream");
  const headBytes = (await reader.take(4)).readUInt32BE();
  if (headBytes > maxHeaderBytes) throw new Error("the header is too long");
  const head = await reader.take(headBytes);
  const header = JSON.parse(head.toString()) as SealedHeader & { salt: string };
  if (header.format !== expected.format) throw new Error(`the stream is a ${header.format}, not a ${expected.format}`);
  for (const [label, value] of Object.entries(expected)) {
    const found = lookUp(header, label);
    if (found !== value) throw new Error(`the stream's ${label} is ${found}, not ${value}`);
  }
  const key = streamKey(keyOf(header.keyVersion), Buffer.from(header.salt, "base64"));
  for (let number = 0; ; number += 1) {
    const length = (await reader.take(4)).readUInt32BE();
    const last = length >= lastMark;
    const size = last ? length - lastMark : length;
    if (size < tagBytes || size > frameBytes + tagBytes) throw new Error("a frame has an impossible length");
    const text = await reader.take(size);
    const decipher = createDecipheriv("aes-256-gcm", key, nonceOf(number));
    decipher.setAAD(associated(head, last));
    decipher.setAuthTag(text.subarray(-tagBytes));
    yield Buffer.concat([decipher.update(text.subarray(0, -tagBytes)), decipher.final()]);
    if (!last) continue;
    if ((await reader.takeUpTo(1)).length > 0) throw new Error("bytes follow the last frame");
    return;
  }
}

function streamKey(master: Uint8Array, salt: Uint8Array): Buffer {
  return Buffer.from(hkdfSync("sha256", master, salt, "holdfast sealed stream", 32));
}

function nonceOf(number: number): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeBigUInt64BE(BigInt(number), 4);
  return nonce;
}

function associated(head: Buffer, last: boolean): Buffer {
  const digest = createHash("sha256").update(head).digest();
  return Buffer.concat([digest, Buffer.of(last ? 1 : 0)]);
}

function lengthOf(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** The bytes after the transform. An error of the source or of the transform is thrown to the reader. */
export function pipeThrough(source: AsyncIterable<Uint8Array>, transform: Transform): AsyncIterable<Buffer> {
  return pipeline(Readable.from(source), transform, () => {
    // The error also destroys the transform, so the reader receives it.
  });
}

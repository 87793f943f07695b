import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { SealingKey } from "./backup-manifest.ts";
import { BackupDamaged } from "./backup-reader.ts";
import { logObject } from "./object-names.ts";

/**
 * A piece of an engine's log in one object: `HFLO1`, the header's length (4 bytes) and JSON, the compressed log as
 * AES-256-CBC ciphertext, and 32 bytes of HMAC-SHA256 over everything before. Both keys derive from a random salt in
 * the header. The HMAC is checked before any byte is decrypted.
 */
export interface LogHeader {
  readonly service: string;
  readonly term: number;
  /** Sequence number within the term, from 1 on without gaps. */
  readonly sequence: number;
  /** Timeline, or the engine's equivalent. */
  readonly branch: string;
  /** First position, and the one after the last, in the engine's format, such as `0/3000000`. */
  readonly from: string;
  readonly to: string;
  /** Time of a commit before `to`, RFC 3339; empty if there is none. */
  readonly time: string;
  /** Settings under which the engine wrote its log, oldest first; absent in objects of older versions. */
  readonly settings?: readonly LogSettings[];
}

/** Minimum values of settings that replay needs from a log position on. */
export interface LogSettings {
  readonly from: string;
  readonly values: Readonly<Record<string, number>>;
}

interface StoredHeader extends LogHeader {
  readonly format: typeof format;
  readonly keyId: string;
  readonly codec: "zstd";
  /** Size of the plain log. */
  readonly bytes: number;
  readonly salt: string;
  readonly iv: string;
}

/** Random values of an object. The same values and log produce the same object, so a retried upload is identical. */
export interface LogSecrets {
  readonly salt: Buffer;
  readonly iv: Buffer;
}

export interface OpenedLog {
  readonly header: LogHeader;
  readonly log: Buffer;
}

const format = "holdfast log 1";
const magic = Buffer.from("HFLO1");
const macBytes = 32;
const maxHeaderBytes = 4_096;
const logBytesMax = 64 << 20;

export function newLogSecrets(random: (bytes: number) => Buffer = randomBytes): LogSecrets {
  return { salt: random(32), iv: random(16) };
}

export function sealLog(log: Buffer, header: LogHeader, key: SealingKey, { salt, iv }: LogSecrets): Buffer {
  const stored: StoredHeader = {
    format,
    ...header,
    keyId: key.id,
    codec: "zstd",
    bytes: log.length,
    salt: salt.toString("base64"),
    iv: iv.toString("base64"),
  };
  const head = Buffer.from(JSON.stringify(stored));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(head.length);
  const compressed = zstdCompressSync(log, { params: { [constants.ZSTD_c_compressionLevel]: 1 } });
  const { cipherKey, macKey } = keysOf(key.secret, salt);
  const cipher = createCipheriv("aes-256-cbc", cipherKey, iv);
  const sealed = Buffer.concat([magic, length, head, cipher.update(compressed), cipher.final()]);
  return Buffer.concat([sealed, createHmac("sha256", macKey).update(sealed).digest()]);
}

/** Number of bytes from an object's start that include its header. */
export const logHeadBytes = magic.length + 4 + maxHeaderBytes;

/** Reads the header without verifying it, for planning only. Undefined if it is not a log object. */
export function peekLog(start: Buffer): (LogHeader & { readonly keyId: string }) | undefined {
  if (start.length < magic.length + 4 || !start.subarray(0, magic.length).equals(magic)) return undefined;
  const headBytes = start.readUInt32BE(magic.length);
  if (headBytes > maxHeaderBytes || start.length < magic.length + 4 + headBytes) return undefined;
  return parsed(start.subarray(magic.length + 4, magic.length + 4 + headBytes));
}

/**
 * Verifies and decrypts a log object. Throws BackupDamaged unless it is the expected one; `keyOf` returns undefined for
 * an unknown key id.
 */
export function openLog(
  object: Buffer,
  expected: Pick<LogHeader, "service" | "term" | "sequence">,
  keyOf: (id: string) => Uint8Array | undefined,
): OpenedLog {
  const refuse = refuserOf(expected);
  const { head, end: headEnd } = headOf(object, refuse);
  const secret = keyOf(head.keyId) ?? refuse(`its key ${head.keyId} is not known`);
  const { cipherKey, macKey } = keysOf(secret, Buffer.from(head.salt, "base64"));
  const sealed = object.subarray(0, -macBytes);
  const mac = createHmac("sha256", macKey).update(sealed).digest();
  if (!timingSafeEqual(mac, object.subarray(-macBytes))) refuse("it was changed");
  if (head.format !== format) refuse(`it is a ${head.format}, not a ${format}`);
  if (head.service !== expected.service) refuse("it is of another service");
  if (head.term !== expected.term || head.sequence !== expected.sequence) refuse("it has another position");
  if (head.bytes > logBytesMax) refuse("it is too large");
  const decipher = createDecipheriv("aes-256-cbc", cipherKey, Buffer.from(head.iv, "base64"));
  const compressed = Buffer.concat([decipher.update(sealed.subarray(headEnd)), decipher.final()]);
  const log = zstdDecompressSync(compressed, { maxOutputLength: logBytesMax });
  if (log.length !== head.bytes) refuse("it has another length");
  const { service, term, sequence, branch, from, to, time, settings } = head;
  return { header: { service, term, sequence, branch, from, to, time, ...(settings && { settings }) }, log };
}

type Refuse = (reason: string) => never;

function refuserOf({ service, term, sequence }: Pick<LogHeader, "service" | "term" | "sequence">): Refuse {
  return (reason) => {
    throw new BackupDamaged(`log ${term}/${sequence}: ${reason}`, { object: logObject({ service, term }, sequence) });
  };
}

/** The header and the offset of its end. */
function headOf(object: Buffer, refuse: Refuse): { readonly head: StoredHeader; readonly end: number } {
  const start = magic.length + 4;
  if (object.length < start + macBytes || !object.subarray(0, magic.length).equals(magic))
    refuse("it is not a log object");
  const end = start + object.readUInt32BE(magic.length);
  if (end - start > maxHeaderBytes || end + macBytes > object.length) refuse("its header is truncated");
  return { head: parsed(object.subarray(start, end)) ?? refuse("its header is not readable"), end };
}

function keysOf(secret: Uint8Array, salt: Buffer): { readonly cipherKey: Buffer; readonly macKey: Buffer } {
  const derived = (purpose: string) => Buffer.from(hkdfSync("sha256", secret, salt, purpose, 32));
  return { cipherKey: derived("holdfast log cipher"), macKey: derived("holdfast log mac") };
}

function parsed(head: Buffer): StoredHeader | undefined {
  try {
    const header = JSON.parse(head.toString("utf8")) as StoredHeader;
    return typeof header.salt === "string" && typeof header.iv === "string" ? header : undefined;
  } catch {
    return undefined;
  }
}

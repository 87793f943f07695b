import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { incrementBytes } from "./incremental.ts";

const tagBytes = 16;
/** Each key seals a single payload, so a constant nonce is safe. */
const nonce = Buffer.alloc(12);

/**
 * Encrypts bytes for the object store with AES-256-GCM under a new key; the tag is at the end. Yields to the event loop
 * between blocks.
 */
export async function sealPayload(plain: Uint8Array): Promise<{ readonly sealed: Buffer; readonly key: Buffer }> {
  const key = randomBytes(32);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  const sealed = Buffer.allocUnsafe(plain.byteLength + tagBytes);
  for (let at = 0; at < plain.byteLength; at += incrementBytes) {
    cipher.update(plain.subarray(at, at + incrementBytes)).copy(sealed, at);
    if (at > 0) await yieldToEventLoop();
  }
  cipher.final();
  cipher.getAuthTag().copy(sealed, plain.byteLength);
  return { sealed, key };
}

/** Decrypts a sealed payload. Rejects if it was not sealed under this key, or was changed. */
export async function openPayload(sealed: Uint8Array, key: Uint8Array): Promise<Buffer> {
  if (sealed.byteLength < tagBytes) throw new Error("the sealed payload is truncated");
  const decipher = createDecipheriv("aes-256-gcm", key, nonce);
  const end = sealed.byteLength - tagBytes;
  decipher.setAuthTag(sealed.subarray(end));
  const plain = Buffer.allocUnsafe(end);
  for (let at = 0; at < end; at += incrementBytes) {
    decipher.update(sealed.subarray(at, Math.min(at + incrementBytes, end))).copy(plain, at);
    if (at > 0) await yieldToEventLoop();
  }
  decipher.final();
  return plain;
}

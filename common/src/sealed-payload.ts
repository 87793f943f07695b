import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { turnBytes } from "./in-turns.ts";

const tagBytes = 16;
/** A key seals one text only, so its nonce may be any. */
const nonce = Buffer.alloc(12);

/** Seals bytes for the object store under a key of their own: AES-256-GCM, the tag at the end. What is large is sealed in turns. */
export async function sealPayload(plain: Uint8Array): Promise<{ readonly sealed: Buffer; readonly key: Buffer }> {
  const key = randomBytes(32);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  const sealed = Buffer.allocUnsafe(plain.byteLength + tagBytes);
  for (let at = 0; at < plain.byteLength; at += turnBytes) {
    cipher.update(plain.subarray(at, at + turnBytes)).copy(sealed, at);
    if (at > 0) await turn();
  }
  cipher.final();
  cipher.getAuthTag().copy(sealed, plain.byteLength);
  return { sealed, key };
}

/** Rejects for what is not what was sealed under the key. */
export async function openPayload(sealed: Uint8Array, key: Uint8Array): Promise<Buffer> {
  if (sealed.byteLength < tagBytes) throw new Error("a sealed payload is cut short");
  const decipher = createDecipheriv("aes-256-gcm", key, nonce);
  const end = sealed.byteLength - tagBytes;
  decipher.setAuthTag(sealed.subarray(end));
  const plain = Buffer.allocUnsafe(end);
  for (let at = 0; at < end; at += turnBytes) {
    decipher.update(sealed.subarray(at, Math.min(at + turnBytes, end))).copy(plain, at);
    if (at > 0) await turn();
  }
  decipher.final();
  return plain;
}

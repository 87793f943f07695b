import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from "node:crypto";

const nonceBytes = 12;
const tagBytes = 16;

/** Encrypts with AES-256-GCM and a random nonce, in base64url; `bound` is authenticated and needed to decrypt. */
export function seal(key: KeyObject, plain: string, bound: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(Buffer.from(bound));
  return Buffer.concat([nonce, cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()]).toString(
    "base64url",
  );
}

/** Decrypts; undefined if the text was not sealed under this key and `bound`. */
export function unseal(key: KeyObject, sealed: string, bound: string): string | undefined {
  const bytes = Buffer.from(sealed, "base64url");
  if (bytes.length < nonceBytes + tagBytes) return undefined;
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes));
    decipher.setAAD(Buffer.from(bound));
    decipher.setAuthTag(bytes.subarray(-tagBytes));
    return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "utf8") + decipher.final("utf8");
  } catch {
    return undefined;
  }
}

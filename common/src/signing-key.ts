import { randomBytes, webcrypto } from "node:crypto";

const keyAlgorithm = { name: "ECDSA", namedCurve: "P-256" };

/** How keys of authorities sign. */
export const signingAlgorithm = { name: "ECDSA", hash: "SHA-256" };

/** A P-256 key that can leave memory. */
export function newKeyPair(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(keyAlgorithm, true, ["sign", "verify"]) as Promise<webcrypto.CryptoKeyPair>;
}

/** PKCS #8 in PEM. */
export async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key));
  return `-----BEGIN PRIVATE KEY-----\n${(der.toString("base64").match(/.{1,64}/g) ?? []).join("\n")}\n-----END PRIVATE KEY-----\n`;
}

/** A key for signing that cannot leave memory again. */
export function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = Buffer.from(pem.replaceAll(/-----[^-]*-----|\s/g, ""), "base64");
  return webcrypto.subtle.importKey("pkcs8", der, keyAlgorithm, false, ["sign"]);
}

/**
 * Of a certificate, in hex: 126 random bits. The first byte is never zero and never negative, so that every tool prints it the
 * same.
 */
export function newSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString("hex");
}

import { randomBytes, webcrypto } from "node:crypto";

const keyAlgorithm = { name: "ECDSA", namedCurve: "P-256" };

/** Signature algorithm of the authorities' keys. */
export const signingAlgorithm = { name: "ECDSA", hash: "SHA-256" };

/** Generates an extractable P-256 key pair. */
export function newKeyPair(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(keyAlgorithm, true, ["sign", "verify"]) as Promise<webcrypto.CryptoKeyPair>;
}

/** Exports a private key as PKCS #8 in PEM. */
export async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key));
  return `-----BEGIN PRIVATE KEY-----\n${(der.toString("base64").match(/.{1,64}/g) ?? []).join("\n")}\n-----END PRIVATE KEY-----\n`;
}

/** Imports a private key for signing; it is not extractable. */
export function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = Buffer.from(pem.replaceAll(/-----[^-]*-----|\s/g, ""), "base64");
  return webcrypto.subtle.importKey("pkcs8", der, keyAlgorithm, false, ["sign"]);
}

/**
 * A new certificate serial number in hex, with 126 random bits. The first byte is never zero or negative, so that all
 * tools format it alike.
 */
export function newSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString("hex");
}

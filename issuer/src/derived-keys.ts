import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from "node:crypto";

/**
 * Keys derived from the secret of one app, each for a single purpose (HKDF, RFC 5869). All replicas derive the same
 * keys.
 */
export interface DerivedKeys {
  /** HMAC-SHA256, base64url. */
  mac(purpose: string, text: string): string;
  /** True if the MAC is valid; compared in constant time. */
  isMac(purpose: string, text: string, mac: string): boolean;
  /** A 32-byte key for AES-256-GCM. */
  sealingKey(purpose: string): KeyObject;
}

export function createDerivedKeys(secret: string): DerivedKeys {
  const keys = new Map<string, KeyObject>();
  const keyOf = (purpose: string): KeyObject => {
    const cached = keys.get(purpose);
    if (cached !== undefined) return cached;
    const bytes = hkdfSync("sha256", Buffer.from(secret, "base64url"), "", `holdfast issuer ${purpose}`, 32);
    const key = createSecretKey(Buffer.from(bytes));
    keys.set(purpose, key);
    return key;
  };
  const digest = (purpose: string, text: string) => createHmac("sha256", keyOf(purpose)).update(text).digest();
  return {
    mac: (purpose, text) => digest(purpose, text).toString("base64url"),
    isMac(purpose, text, mac) {
      const presented = Buffer.from(mac, "base64url");
      const expected = digest(purpose, text);
      return presented.length === expected.length && timingSafeEqual(presented, expected);
    },
    sealingKey: (purpose) => keyOf(`seal ${purpose}`),
  };
}

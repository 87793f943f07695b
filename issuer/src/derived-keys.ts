import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from "node:crypto";

/** Keys for single purposes, of the secret of one app (RFC 5869). All replicas derive the same ones. */
export interface DerivedKeys {
  /** HMAC-SHA256, base64url. */
  mac(purpose: string, text: string): string;
  /** Is it that one? In constant time. */
  isMac(purpose: string, text: string, mac: string): boolean;
  /** 32 bytes for AES-256-GCM. */
  sealingKey(purpose: string): KeyObject;
}

export function createDerivedKeys(secret: string): DerivedKeys {
  const keys = new Map<string, KeyObject>();
  const keyOf = (purpose: string): KeyObject => {
    const known = keys.get(purpose);
    if (known !== undefined) return known;
    const bytes = hkdfSync("sha256", Buffer.from(secret, "base64url"), "", `holdfast issuer ${purpose}`, 32);
    const key = createSecretKey(Buffer.from(bytes));
    keys.set(purpose, key);
    return key;
  };
  const digest = (purpose: string, text: string) => createHmac("sha256", keyOf(purpose)).update(text).digest();
  return {
    mac: (purpose, text) => digest(purpose, text).toString("base64url"),
    isMac(purpose, text, mac) {
      const given = Buffer.from(mac, "base64url");
      const right = digest(purpose, text);
      return given.length === right.length && timingSafeEqual(given, right);
    },
    sealingKey: (purpose) => keyOf(`seal ${purpose}`),
  };
}

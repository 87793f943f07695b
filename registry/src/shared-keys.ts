import { createECDH, hkdfSync } from "node:crypto";

/** Length in bytes of a P-256 key, and of all secrets here. */
const secretBytes = 32;

/**
 * Keys that all registries with the same images have, so that an upload may begin at one and end at another. They are
 * derived from the secret of the object store, whose owner can change the images anyway.
 */
export interface SharedKeys {
  /** Secret by which docker-registry recognizes uploads that it began. */
  readonly uploads: string;
  /** Private P-256 key that signs tokens, as a JSON web key. */
  readonly tokens: Readonly<Record<"kty" | "crv" | "x" | "y" | "d", string>>;
}

export function sharedKeysOf(storeSecret: string): SharedKeys {
  return { uploads: derived(storeSecret, "uploads").toString("hex"), tokens: signingKeyOf(storeSecret) };
}

function signingKeyOf(storeSecret: string): SharedKeys["tokens"] {
  for (let attempt = 1; ; attempt += 1) {
    const d = derived(storeSecret, `tokens ${attempt}`);
    const ecdh = createECDH("prime256v1");
    try {
      ecdh.setPrivateKey(d);
    } catch {
      // One value in four thousand million is not a key of the curve.
      continue;
    }
    const [x, y] = [1, 1 + secretBytes].map((from) => ecdh.getPublicKey().subarray(from, from + secretBytes));
    const encoded = (bytes?: Uint8Array) => Buffer.from(bytes ?? []).toString("base64url");
    return { kty: "EC", crv: "P-256", x: encoded(x), y: encoded(y), d: encoded(d) };
  }
}

function derived(storeSecret: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", storeSecret, "", `holdfast registry ${purpose}`, secretBytes));
}

import { generateKeyPair } from "node:crypto";
import { promisify } from "node:util";
import { calculateJwkThumbprint, exportJWK } from "jose";
import type { SigningKeySpec } from "./auth.ts";

/** Seals with the key of the object that stores the result. */
type Seal = (plain: string) => string;

/** More than the lifetime of a token (10 min), the cache time of a JWKS (5 min) and the clock skew (1 min) together. */
const retiresAfterMs = 24 * 3_600_000;
/** Number of retired keys that are retained. */
const retiredMax = 10;
const retiringMax = 8;

/** Generates an RSA key in status standby. */
export async function newSigningKey(seal: Seal): Promise<SigningKeySpec> {
  const { privateKey, publicKey } = await promisify(generateKeyPair)("rsa", { modulusLength: 2_048 });
  const jwk = await exportJWK(publicKey);
  const kid = await calculateJwkThumbprint(jwk);
  return {
    kid,
    status: "standby",
    publicJwk: JSON.stringify({ ...jwk, kid, alg: "RS256", use: "sig" }),
    sealedPrivateKey: seal(privateKey.export({ type: "pkcs8", format: "pem" }) as string),
    activatedAt: null,
    retiresAt: null,
  };
}

/** The first keys of an issuer. */
export function initialKeys(active: SigningKeySpec, standby: SigningKeySpec, now: number): SigningKeySpec[] {
  return [standby, activated(active, now)];
}

/** True if one more key may become retiring; a JWKS contains all retiring keys. */
export function canRotate(keys: readonly SigningKeySpec[]): boolean {
  return keys.filter(({ status }) => status === "retiring").length < retiringMax;
}

/** The standby key becomes active, the active one retires, and `next` is the new standby. */
export function rotatedKeys(keys: readonly SigningKeySpec[], next: SigningKeySpec, now: number): SigningKeySpec[] {
  const moved = keys.map((key) => {
    if (key.status === "standby") return activated(key, now);
    if (key.status !== "active") return key;
    return { ...key, status: "retiring" as const, sealedPrivateKey: "", retiresAt: now + retiresAfterMs };
  });
  return withoutOldRetired([next, ...moved]);
}

/** Retires all keys immediately, and drops the standby key: an attacker with one key may have all. */
export function replacedKeys(
  keys: readonly SigningKeySpec[],
  active: SigningKeySpec,
  standby: SigningKeySpec,
  now: number,
): SigningKeySpec[] {
  const ended = keys.filter(({ status }) => status !== "standby").map((key) => retired(key, now));
  return withoutOldRetired([standby, activated(active, now), ...ended]);
}

/** The keys after the retirement of those that are due; undefined if none is due. */
export function retireDue(keys: readonly SigningKeySpec[], now: number): SigningKeySpec[] | undefined {
  const isDue = ({ status, retiresAt }: SigningKeySpec) => status === "retiring" && (retiresAt ?? 0) <= now;
  if (!keys.some(isDue)) return undefined;
  return keys.map((key) => (isDue(key) ? retired(key, now) : key));
}

/** Time at which the next key retires, in milliseconds since 1970. */
export function nextRetirement(keys: readonly SigningKeySpec[]): number | undefined {
  const times = keys.flatMap(({ status, retiresAt }) =>
    status === "retiring" && retiresAt !== null ? [retiresAt] : [],
  );
  return times.length === 0 ? undefined : Math.min(...times);
}

function activated(key: SigningKeySpec, now: number): SigningKeySpec {
  return { ...key, status: "active", activatedAt: now };
}

function retired(key: SigningKeySpec, now: number): SigningKeySpec {
  const retiresAt = key.status === "retired" ? key.retiresAt : now;
  return { ...key, status: "retired", sealedPrivateKey: "", retiresAt };
}

function withoutOldRetired(keys: readonly SigningKeySpec[]): SigningKeySpec[] {
  const old = keys.filter(({ status }) => status === "retired").slice(retiredMax);
  return keys.filter((key) => !old.includes(key));
}

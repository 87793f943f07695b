import { generateKeyPair } from "node:crypto";
import { promisify } from "node:util";
import { calculateJwkThumbprint, exportJWK } from "jose";
import type { SigningKeySpec } from "./auth.ts";

/** Seals with the key of the object that keeps it. */
type Seal = (plain: string) => string;

/** Tokens of 10 minutes, a JWKS that is kept for 5, and a minute of clocks that differ are over long before. */
const retiresAfterMs = 24 * 3_600_000;
/** Of keys that sign no more. */
const keptRetired = 10;
const retiringMax = 8;

/** A new key that signs nothing yet. */
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

/** Pure: the first keys of an issuer. */
export function firstKeys(active: SigningKeySpec, standby: SigningKeySpec, now: number): SigningKeySpec[] {
  return [standby, activated(active, now)];
}

/** Pure: may another key retire? Verifiers keep all that do. */
export function hasRoomToRotate(keys: readonly SigningKeySpec[]): boolean {
  return keys.filter(({ status }) => status === "retiring").length < retiringMax;
}

/** Pure: the standby key signs, the one that did retires, and `next` is the new standby. */
export function rotatedKeys(keys: readonly SigningKeySpec[], next: SigningKeySpec, now: number): SigningKeySpec[] {
  const moved = keys.map((key) => {
    if (key.status === "standby") return activated(key, now);
    if (key.status !== "active") return key;
    return { ...key, status: "retiring" as const, sealedPrivateKey: "", retiresAt: now + retiresAfterMs };
  });
  return kept([next, ...moved]);
}

/** Pure: nothing that was there is trusted any more, the standby neither: whoever has one key may have them all. */
export function replacedKeys(
  keys: readonly SigningKeySpec[],
  active: SigningKeySpec,
  standby: SigningKeySpec,
  now: number,
): SigningKeySpec[] {
  const ended = keys.filter(({ status }) => status !== "standby").map((key) => retired(key, now));
  return kept([standby, activated(active, now), ...ended]);
}

/** Pure: without private parts of what signs no more, and `undefined` when none is due. */
export function retireDue(keys: readonly SigningKeySpec[], now: number): SigningKeySpec[] | undefined {
  const isDue = ({ status, retiresAt }: SigningKeySpec) => status === "retiring" && (retiresAt ?? 0) <= now;
  if (!keys.some(isDue)) return undefined;
  return keys.map((key) => (isDue(key) ? retired(key, now) : key));
}

/** When the next key retires. */
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

function kept(keys: readonly SigningKeySpec[]): SigningKeySpec[] {
  const old = keys.filter(({ status }) => status === "retired").slice(keptRetired);
  return keys.filter((key) => !old.includes(key));
}

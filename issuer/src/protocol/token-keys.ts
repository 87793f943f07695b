import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import { type JWTPayload, jwtVerify, type JWTVerifyResult } from "jose";
import type { SigningKey } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";

/** Signing keys of an app's tokens. */
export interface TokenKeys {
  /** The published JWKS (RFC 7517). */
  readonly jwks: string;
  /** Signs an RS256 JWT with exactly these claims. */
  sign(claims: JWTPayload, type: string): Promise<string>;
  /**
   * Verifies a JWT. Undefined if no published key signed it, if it is of another issuer, or if it has expired (unless
   * `allowExpired`).
   */
  verify(token: string, type: string, options?: { readonly allowExpired?: boolean }): Promise<JWTPayload | undefined>;
}

interface PublicJwk {
  readonly kid: string;
  readonly kty: string;
  readonly n: string;
  readonly e: string;
}

const signWith = promisify(sign);

/** RS256 (RFC 7518 section 3.3), computed in the thread pool. */
function rs256(text: string, key: KeyObject): Promise<Buffer> {
  return signWith("sha256", Buffer.from(text), key);
}

export function createTokenKeys(keys: readonly SigningKey[], issuer: string, now: () => number): TokenKeys {
  const active = keys.find(({ status }) => status === "active");
  const signing = active === undefined ? undefined : { kid: active.kid, key: createPrivateKey(active.privateKey) };
  const published = keys.map(({ publicJwk }) => JSON.parse(publicJwk) as PublicJwk);
  const verifying = new Map<string, KeyObject>(
    published.map((jwk) => [jwk.kid, createPublicKey({ key: { ...jwk }, format: "jwk" })]),
  );
  return {
    jwks: JSON.stringify({ keys: published }),
    async sign(claims, type) {
      if (signing === undefined) throw new Error("the app has no active signing key");
      const header = { alg: "RS256", kid: signing.kid, typ: type };
      const text = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
      return `${text}.${(await rs256(text, signing.key)).toString("base64url")}`;
    },
    async verify(token, type, { allowExpired = false } = {}) {
      try {
        const options = { issuer, typ: type, algorithms: ["RS256"] };
        const at = allowExpired ? { currentDate: new Date(0), clockTolerance: 0 } : { currentDate: new Date(now()) };
        const found: JWTVerifyResult = await jwtVerify(
          token,
          ({ kid }) => {
            const key = verifying.get(kid ?? "");
            if (key === undefined) throw new Error("no such key");
            return key;
          },
          { ...options, ...at },
        );
        return found.payload;
      } catch {
        return undefined;
      }
    },
  };
}

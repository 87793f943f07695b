import "reflect-metadata";
import { createHash, createPrivateKey, createPublicKey, randomUUID, sign, verify, webcrypto } from "node:crypto";
import { newSerial, signingAlgorithm } from "@holdfast/common/signing-key.ts";
import { X509CertificateGenerator } from "@peculiar/x509";
import type { SharedKeys } from "./shared-keys.ts";

/** The actions that a token permits in one repository. */
export interface RepositoryAccess {
  readonly type: "repository";
  /** Name with the namespace of the organization: "0198f2a4-.../shop". */
  readonly name: string;
  readonly actions: readonly string[];
}

/** Contents of a token. */
export interface Claims {
  readonly sub: string;
  readonly access: readonly RepositoryAccess[];
}

/**
 * Signs the tokens that docker-registry requires (its "token authentication specification"): JSON web tokens by ES256,
 * with the fingerprint of the key in the header. All registries of the same images have the same key.
 */
export interface AccessTokens {
  /** Certificate that docker-registry verifies tokens by, PEM. */
  readonly certificate: string;
  sign(claims: Claims): string;
  /** The claims of a token that a registry with the same key signed and that has not expired. */
  verify(token: string): Claims | undefined;
}

/** Audience and issuer of the tokens, which the configuration of docker-registry has too. */
export const tokenService = "holdfast-registry";
/** A revoked credential pushes and pulls for this time at most. */
export const tokenSeconds = 300;

const dayMs = 86_400_000;
const clockSkewS = 30;
const base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

export async function createAccessTokens(jwk: SharedKeys["tokens"], now: () => number): Promise<AccessTokens> {
  const key = createPrivateKey({ key: jwk, format: "jwk" });
  const publicKey = createPublicKey(key);
  const { d: _, ...publicJwk } = jwk;
  const imported = (each: object, usage: webcrypto.KeyUsage) =>
    webcrypto.subtle.importKey("jwk", each, { name: "ECDSA", namedCurve: jwk.crv }, true, [usage]);
  const selfSigned = await X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    name: `CN=${tokenService}`,
    notBefore: new Date(now() - dayMs),
    notAfter: new Date(now() + 3_650 * dayMs),
    signingAlgorithm,
    keys: { privateKey: await imported(jwk, "sign"), publicKey: await imported(publicJwk, "verify") },
  });
  const certificate = selfSigned.toString("pem");
  const header = encoded({ typ: "JWT", alg: "ES256", kid: keyIdOf(publicKey.export({ type: "spki", format: "der" })) });

  return {
    certificate,
    sign({ sub, access }) {
      const issuedAt = Math.floor(now() / 1_000);
      const claims = {
        iss: tokenService,
        aud: tokenService,
        sub,
        iat: issuedAt,
        nbf: issuedAt - clockSkewS,
        exp: issuedAt + tokenSeconds,
        jti: randomUUID(),
        access,
      };
      const signed = `${header}.${encoded(claims)}`;
      const signature = sign("sha256", Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" });
      return `${signed}.${signature.toString("base64url")}`;
    },
    verify(token) {
      const [head = "", body = "", signature = ""] = token.split(".");
      if (head !== header) return undefined;
      const checked = Buffer.from(`${head}.${body}`);
      const options = { key: publicKey, dsaEncoding: "ieee-p1363" } as const;
      if (!verify("sha256", checked, options, Buffer.from(signature, "base64url"))) return undefined;
      const claims = JSON.parse(Buffer.from(body, "base64url").toString("utf8")) as Claims & { readonly exp: number };
      return claims.exp * 1_000 > now() ? claims : undefined;
    },
  };
}

/** Fingerprint of a public key as libtrust computes it: 240 bits of its SHA-256 in base32, in groups of four. */
function keyIdOf(spki: Buffer): string {
  const bits = [...createHash("sha256").update(spki).digest().subarray(0, 30)]
    .map((byte) => byte.toString(2).padStart(8, "0"))
    .join("");
  const letters = bits.match(/.{5}/g)?.map((five) => base32[Number.parseInt(five, 2)]);
  return letters?.join("").match(/.{4}/g)?.join(":") ?? "";
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

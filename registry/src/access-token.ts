import "reflect-metadata";
import { randomUUID, sign, verify, X509Certificate } from "node:crypto";
import { exportKey, newKeyPair, newSerial, signingAlgorithm } from "@holdfast/common/signing-key.ts";
import { X509CertificateGenerator } from "@peculiar/x509";

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
 * with the certificate of the key in the header. The key exists in this process alone, so that a token is worth nothing
 * after its end.
 */
export interface AccessTokens {
  /** Certificate that docker-registry verifies tokens by, PEM. */
  readonly certificate: string;
  sign(claims: Claims): string;
  /** The claims of a token that this process signed and that has not expired. */
  verify(token: string): Claims | undefined;
}

/** Audience and issuer of the tokens, which the configuration of docker-registry has too. */
export const tokenService = "holdfast-registry";
/** A revoked credential pushes and pulls for this time at most. */
export const tokenSeconds = 300;

const dayMs = 86_400_000;
const clockSkewS = 30;

export async function createAccessTokens(now: () => number): Promise<AccessTokens> {
  const keys = await newKeyPair();
  const key = await exportKey(keys.privateKey);
  const selfSigned = await X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    name: `CN=${tokenService}`,
    notBefore: new Date(now() - dayMs),
    notAfter: new Date(now() + 3_650 * dayMs),
    signingAlgorithm,
    keys,
  });
  const certificate = selfSigned.toString("pem");
  const { publicKey, raw } = new X509Certificate(certificate);
  const header = encoded({ typ: "JWT", alg: "ES256", x5c: [raw.toString("base64")] });

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

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

import "reflect-metadata";
import { webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

export interface TestCertificate {
  /** PEM of a self-signed certificate for localhost and 127.0.0.1. */
  readonly cert: string;
  readonly key: string;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

/** A certificate that is valid for an hour, or until `endsAt` (ms since 1970); optionally for another address too. */
export async function createTestCertificate(
  endsAt = Date.now() + 3_600_000,
  address = "127.0.0.1",
): Promise<TestCertificate> {
  x509.cryptoProvider.set(webcrypto as never);
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=localhost",
    keys: keys as never,
    notBefore: new Date(Math.min(Date.now(), endsAt) - 60_000),
    notAfter: new Date(endsAt),
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.SubjectAlternativeNameExtension([
        { type: "dns", value: "localhost" },
        ...[...new Set(["127.0.0.1", address])].map((value) => ({ type: "ip" as const, value })),
      ]),
    ],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey)).toString("base64");
  const key = `-----BEGIN PRIVATE KEY-----\n${pkcs8.replaceAll(/(.{64})/g, "$1\n")}\n-----END PRIVATE KEY-----\n`;
  return { cert: certificate.toString("pem"), key };
}

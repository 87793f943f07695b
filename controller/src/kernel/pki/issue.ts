import type { webcrypto } from "node:crypto";
import { invalid } from "@holdfast/common/errors.ts";
import "reflect-metadata";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Pkcs10CertificateRequest,
  type PublicKey,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { canonicalSerial } from "@holdfast/common/identity.ts";
import { newSerial, signingAlgorithm } from "@holdfast/common/signing-key.ts";

type CryptoKey = webcrypto.CryptoKey;
type CryptoKeyPair = webcrypto.CryptoKeyPair;

/** A certificate authority with its key in memory. */
export interface Signer {
  readonly certificate: Uint8Array;
  readonly subject: string;
  readonly key: CryptoKey;
  readonly publicKey: PublicKey;
}

/** The contents of a leaf certificate. */
export interface Leaf {
  readonly commonName: string;
  readonly publicKey: PublicKey | CryptoKey;
  readonly uris: readonly string[];
  readonly names: readonly string[];
  readonly addresses: readonly string[];
  readonly client: boolean;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** A self-signed authority certificate; it may sign leaf certificates only (path length 0). */
export async function issueAuthority(
  commonName: string,
  keys: CryptoKeyPair,
  notBefore: Date,
  notAfter: Date,
): Promise<Uint8Array> {
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    name: [{ CN: [commonName] }],
    notBefore,
    notAfter,
    signingAlgorithm,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return new Uint8Array(certificate.rawData);
}

/** A leaf certificate for exactly the names of `leaf`. */
export async function issueLeaf(signer: Signer, leaf: Leaf): Promise<{ der: Uint8Array; serial: string }> {
  const serial = newSerial();
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serial,
    subject: [{ CN: [leaf.commonName] }],
    issuer: signer.subject,
    notBefore: leaf.notBefore,
    notAfter: leaf.notAfter,
    signingAlgorithm,
    publicKey: leaf.publicKey,
    signingKey: signer.key,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([
        ExtendedKeyUsage.serverAuth,
        ...(leaf.client ? [ExtendedKeyUsage.clientAuth] : []),
      ]),
      new SubjectAlternativeNameExtension([
        ...leaf.uris.map((value) => ({ type: "url" as const, value })),
        ...leaf.names.map((value) => ({ type: "dns" as const, value })),
        ...leaf.addresses.map((value) => ({ type: "ip" as const, value })),
      ]),
      await SubjectKeyIdentifierExtension.create(leaf.publicKey),
      await AuthorityKeyIdentifierExtension.create(signer.publicKey),
    ],
  });
  return { der: new Uint8Array(certificate.rawData), serial: canonicalSerial(serial) };
}

const curves = new Set(["P-256", "P-384"]);
const requestBytesMax = 8192;

/**
 * The public key of a PKCS #10 request, proven by its signature (RFC 2986). Everything else in the request is ignored.
 * Throws INVALID_REQUEST for other data and for weak keys.
 */
export async function provenKey(request: Uint8Array): Promise<PublicKey> {
  if (request.byteLength > requestBytesMax) throw refused("is too large");
  let parsed: Pkcs10CertificateRequest;
  try {
    parsed = new Pkcs10CertificateRequest(new Uint8Array(request));
  } catch {
    throw refused("is not a PKCS #10 request");
  }
  const algorithm = parsed.publicKey.algorithm as { name: string; namedCurve?: string; modulusLength?: number };
  if (!isAcceptable(algorithm)) throw refused("has a key of a kind that is not accepted");
  const proven = await parsed.verify().catch(() => false);
  if (!proven) throw refused("is not signed by its own key");
  return parsed.publicKey;
}

function isAcceptable(algorithm: { name: string; namedCurve?: string; modulusLength?: number }): boolean {
  if (algorithm.name === "ECDSA") return curves.has(algorithm.namedCurve ?? "");
  if (algorithm.name === "Ed25519") return true;
  return algorithm.name.startsWith("RSA") && (algorithm.modulusLength ?? 0) >= 2048;
}

function refused(detail: string) {
  return invalid({ field: "certificate_request", code: "certificate_request", detail });
}

import { randomBytes, webcrypto } from "node:crypto";
import "reflect-metadata";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  type PublicKey,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { normalSerial } from "@holdfast/common/identity.ts";

type CryptoKey = webcrypto.CryptoKey;
type CryptoKeyPair = webcrypto.CryptoKeyPair;

const keyAlgorithm = { name: "ECDSA", namedCurve: "P-256" };
const signingAlgorithm = { name: "ECDSA", hash: "SHA-256" };

/** An authority that can sign, its key in memory. */
export interface Signer {
  readonly certificate: Uint8Array;
  readonly subject: string;
  readonly key: CryptoKey;
  readonly publicKey: PublicKey;
}

/** What a certificate is to say. */
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

/** A P-256 key that can leave memory. */
export function newKeyPair(): Promise<CryptoKeyPair> {
  return webcrypto.subtle.generateKey(keyAlgorithm, true, ["sign", "verify"]) as Promise<CryptoKeyPair>;
}

/** PKCS #8 in PEM. */
export async function exportKey(key: CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key));
  return `-----BEGIN PRIVATE KEY-----\n${(der.toString("base64").match(/.{1,64}/g) ?? []).join("\n")}\n-----END PRIVATE KEY-----\n`;
}

/** A key for signing that cannot leave memory again. */
export function importKey(pem: string): Promise<CryptoKey> {
  const der = Buffer.from(pem.replaceAll(/-----[^-]*-----|\s/g, ""), "base64");
  return webcrypto.subtle.importKey("pkcs8", der, keyAlgorithm, false, ["sign"]);
}

/** A certificate authority's own certificate, signed by itself; it may sign leaves and no further authority. */
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

/** A certificate that signs nothing, for exactly the names of the leaf. */
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
  return { der: new Uint8Array(certificate.rawData), serial: normalSerial(serial) };
}

/** 126 random bits; the first byte is never zero and never negative, so that every tool prints it the same. */
function newSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString("hex");
}

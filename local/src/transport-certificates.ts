import { isIP } from "node:net";
import "reflect-metadata";
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type GeneralNameType,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { exportKey, importKey, newKeyPair, newSerial, signingAlgorithm } from "@holdfast/common/signing-key.ts";

/** A certificate with its key, both PEM. */
export interface CertificateWithKey {
  readonly certificate: string;
  readonly key: string;
}

const dayMs = 86_400_000;
/** Life of a certificate in days; its authority is valid for 20 years. */
export const leafDays = 365;

/** A new authority of the connections to etcd and to the history. */
export async function newTransportAuthority(name: string, now: number): Promise<CertificateWithKey> {
  const keys = await newKeyPair();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    name: `CN=${name}`,
    notBefore: new Date(now - dayMs),
    notAfter: new Date(now + 20 * 365 * dayMs),
    signingAlgorithm,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  });
  return { certificate: certificate.toString("pem"), key: await exportKey(keys.privateKey) };
}

/** A new certificate of a server and client with these addresses and host names; a client alone has none. */
export async function newTransportCertificate(
  { name, hosts }: { readonly name: string; readonly hosts: readonly string[] },
  authority: CertificateWithKey,
  now: number,
): Promise<CertificateWithKey> {
  const keys = await newKeyPair();
  const typeOf = (host: string): GeneralNameType => (isIP(host) === 0 ? "dns" : "ip");
  const certificate = await X509CertificateGenerator.create({
    serialNumber: newSerial(),
    subject: `CN=${name}`,
    issuer: new X509Certificate(authority.certificate).subject,
    notBefore: new Date(now - dayMs),
    notAfter: new Date(now + leafDays * dayMs),
    signingAlgorithm,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      ...(hosts.length === 0
        ? []
        : [new SubjectAlternativeNameExtension(hosts.map((value) => ({ type: typeOf(value), value })))]),
    ],
  });
  return { certificate: certificate.toString("pem"), key: await exportKey(keys.privateKey) };
}

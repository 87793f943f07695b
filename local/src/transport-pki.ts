import { X509Certificate as NodeCertificate } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import "reflect-metadata";
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { exportKey, importKey, newKeyPair, newSerial, signingAlgorithm } from "@holdfast/common/signing-key.ts";
import { replaceFileSync } from "./files.ts";

/**
 * Certificates of the connections to etcd and history. They have a separate authority, because the controller creates
 * the platform's authority and needs etcd before that.
 */
export interface TransportFiles {
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

export interface TransportPki {
  readonly etcd: TransportFiles;
  readonly history: TransportFiles;
  readonly controller: TransportFiles;
}

export interface TransportPkiDeps {
  readonly now: number;
  /** Owner of the files of etcd and history; undefined: this user. */
  readonly programOwner: number | undefined;
}

const dayMs = 86_400_000;
const leafDays = 365;

/** Opens the certificates; creates missing ones, and those that expire within half a year. */
export async function openTransportPki(pkiDir: string, deps: TransportPkiDeps): Promise<TransportPki> {
  const parts: readonly [keyof TransportPki, number | undefined][] = [
    ["etcd", deps.programOwner],
    ["history", deps.programOwner],
    ["controller", undefined],
  ];
  const authority = filesOf(pkiDir);
  const minimum = deps.now + (leafDays / 2) * dayMs;
  const current = parts.every(([name]) => lastsUntil(filesOf(join(pkiDir, name)).certificate, minimum));
  if (!current) {
    // The authority is valid for years longer than its certificates; all processes adopt a new one at this start.
    if (!lastsUntil(authority.certificate, deps.now + 2 * leafDays * dayMs)) await makeAuthority(authority, deps.now);
    for (const [name, owner] of parts) await makeLeaf(join(pkiDir, name), name, owner, authority, deps.now);
  }
  return {
    etcd: filesOf(join(pkiDir, "etcd")),
    history: filesOf(join(pkiDir, "history")),
    controller: filesOf(join(pkiDir, "controller")),
  };
}

function filesOf(directory: string): TransportFiles {
  return { ca: join(directory, "ca.crt"), certificate: join(directory, "tls.crt"), key: join(directory, "tls.key") };
}

function lastsUntil(certificate: string, time: number): boolean {
  return existsSync(certificate) && new NodeCertificate(readFileSync(certificate)).validToDate.getTime() > time;
}

async function makeAuthority(files: TransportFiles, now: number): Promise<void> {
  const keys = await newKeyPair();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    name: "CN=Holdfast local transport",
    notBefore: new Date(now - dayMs),
    notAfter: new Date(now + 20 * 365 * dayMs),
    signingAlgorithm,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  });
  replaceFileSync(files.key, await exportKey(keys.privateKey), 0o600);
  replaceFileSync(files.certificate, certificate.toString("pem"), 0o644);
}

async function makeLeaf(
  directory: string,
  name: string,
  owner: number | undefined,
  authority: TransportFiles,
  now: number,
): Promise<void> {
  const authorityPem = readFileSync(authority.certificate, "utf8");
  const keys = await newKeyPair();
  const certificate = await X509CertificateGenerator.create({
    serialNumber: newSerial(),
    subject: `CN=${name}`,
    issuer: new X509Certificate(authorityPem).subject,
    notBefore: new Date(now - dayMs),
    notAfter: new Date(now + leafDays * dayMs),
    signingAlgorithm,
    publicKey: keys.publicKey,
    signingKey: await importKey(readFileSync(authority.key, "utf8")),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      new SubjectAlternativeNameExtension([
        { type: "dns", value: "localhost" },
        { type: "ip", value: "127.0.0.1" },
      ]),
    ],
  });
  mkdirSync(directory, { recursive: true });
  chmodSync(directory, 0o700);
  if (owner !== undefined) chownSync(directory, owner, owner);
  const files = filesOf(directory);
  replaceFileSync(files.key, await exportKey(keys.privateKey), 0o600, owner);
  replaceFileSync(files.certificate, certificate.toString("pem"), 0o644, owner);
  replaceFileSync(files.ca, authorityPem, 0o644, owner);
}

import { X509Certificate } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { replaceFileSync } from "./files.ts";
import { leafDays, newTransportAuthority, newTransportCertificate } from "./transport-certificates.ts";

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

/** Opens the certificates; creates missing ones, and those that expire within half a year. */
export async function openTransportPki(pkiDir: string, deps: TransportPkiDeps): Promise<TransportPki> {
  const parts: readonly [keyof TransportPki, number | undefined][] = [
    ["etcd", deps.programOwner],
    ["history", deps.programOwner],
    ["controller", undefined],
  ];
  const authority = transportFilesIn(pkiDir);
  const minimum = deps.now + (leafDays / 2) * dayMs;
  const current = parts.every(([name]) => lastsUntil(transportFilesIn(join(pkiDir, name)).certificate, minimum));
  if (!current) {
    // The authority is valid for years longer than its certificates; all processes adopt a new one at this start.
    if (!lastsUntil(authority.certificate, deps.now + 2 * leafDays * dayMs)) await makeAuthority(authority, deps.now);
    for (const [name, owner] of parts) await makeLeaf(join(pkiDir, name), name, owner, authority, deps.now);
  }
  return {
    etcd: transportFilesIn(join(pkiDir, "etcd")),
    history: transportFilesIn(join(pkiDir, "history")),
    controller: transportFilesIn(join(pkiDir, "controller")),
  };
}

/** Paths of a certificate, its key and its authority in a directory. */
export function transportFilesIn(directory: string): TransportFiles {
  return { ca: join(directory, "ca.crt"), certificate: join(directory, "tls.crt"), key: join(directory, "tls.key") };
}

function lastsUntil(certificate: string, time: number): boolean {
  return existsSync(certificate) && new X509Certificate(readFileSync(certificate)).validToDate.getTime() > time;
}

async function makeAuthority(files: TransportFiles, now: number): Promise<void> {
  const { key, certificate } = await newTransportAuthority("Holdfast local transport", now);
  replaceFileSync(files.key, key, 0o600);
  replaceFileSync(files.certificate, certificate, 0o644);
}

async function makeLeaf(
  directory: string,
  name: string,
  owner: number | undefined,
  files: TransportFiles,
  now: number,
): Promise<void> {
  const authority = { certificate: readFileSync(files.certificate, "utf8"), key: readFileSync(files.key, "utf8") };
  const leaf = await newTransportCertificate({ name, hosts: ["localhost", "127.0.0.1"] }, authority, now);
  writeTransportFiles(directory, { ...leaf, ca: authority.certificate }, owner);
}

/** Writes a certificate, its key and its authority, each PEM, into a directory of one user. */
export function writeTransportFiles(
  directory: string,
  { ca, certificate, key }: TransportFiles,
  owner: number | undefined,
): void {
  mkdirSync(directory, { recursive: true });
  chmodSync(directory, 0o700);
  if (owner !== undefined) chownSync(directory, owner, owner);
  const files = transportFilesIn(directory);
  replaceFileSync(files.key, key, 0o600, owner);
  replaceFileSync(files.certificate, certificate, 0o644, owner);
  replaceFileSync(files.ca, ca, 0o644, owner);
}

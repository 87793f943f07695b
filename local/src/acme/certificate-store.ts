import { X509Certificate } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { readText, replaceFileSync } from "../files.ts";

/** Files of the certificate with its chain, and of its key. */
export function certificateFiles(directory: string) {
  return { certificate: join(directory, "fullchain.pem"), key: join(directory, "privkey.pem") };
}

/** Stores a certificate. Between the two files, a reader finds the new key with the former certificate. */
export function storeCertificate(directory: string, certificate: string, key: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const files = certificateFiles(directory);
  replaceFileSync(files.key, key, 0o600);
  replaceFileSync(files.certificate, certificate, 0o644);
}

/**
 * Time in milliseconds since 1970 at which a new certificate is due: after two thirds of the current one's life, or
 * immediately if it lacks one of the names.
 */
export function renewalTime(directory: string, names: readonly string[]): number {
  const text = readText(certificateFiles(directory).certificate);
  if (text === undefined) return 0;
  const { validFromDate, validToDate, subjectAltName = "" } = new X509Certificate(text);
  const present = new Set(subjectAltName.split(", "));
  if (!names.every((name) => present.has(`DNS:${name}`))) return 0;
  const from = validFromDate.getTime();
  return from + ((validToDate.getTime() - from) * 2) / 3;
}

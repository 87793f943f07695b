import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import type { Log } from "@holdfast/common/log.ts";
import { type Certificates, createCertificates, type KeyPair } from "@holdfast/https/certificates.ts";

/** Files of an operator's certificate for the API; empty paths: there is none. */
export interface ApiCertificateFiles {
  /** PEM file of the certificate and its chain. */
  readonly certFile: string;
  /** PEM file of its private key. */
  readonly keyFile: string;
  /** True if another program writes the files later, such as a client of ACME. */
  readonly isAwaited?: boolean;
}

/**
 * The operator's certificate, served to clients that request one of its names. Clients that connect to an address or to
 * another name get the installation's certificate, so that programs of the installation need no further authority.
 */
export interface ApiCertificate {
  readonly certificates: Certificates;
  /** Reads the files again. An invalid pair is logged, and the current pair remains in use. */
  reload(): void;
  close(): void;
}

/** Interval of checks for new files. ACME clients replace them weeks before the certificate expires. */
const reloadMs = 60_000;

/** Throws an Error that names the setting, unless the files contain a certificate and its key. */
export function openApiCertificate(files: ApiCertificateFiles, log: Pick<Log, "info" | "error">): ApiCertificate {
  const certificates = createCertificates();
  if (files.certFile === "" && files.keyFile === "")
    return { certificates, reload: () => undefined, close: () => undefined };
  const isAbsent = files.isAwaited === true && !existsSync(files.certFile);
  let current = isAbsent ? undefined : readPair(files);
  let names = current === undefined ? [] : namesOf(current);
  if (current !== undefined) for (const name of names) certificates.set(name, current);

  function reload(): void {
    if (current === undefined && !existsSync(files.certFile)) return;
    try {
      const next = readPair(files);
      if (next.cert === current?.cert && next.key === current.key) return;
      const nextNames = namesOf(next);
      for (const name of nextNames) certificates.set(name, next);
      for (const name of names) if (!nextNames.includes(name)) certificates.delete(name);
      [current, names] = [next, nextNames];
      log.info("api certificate replaced", { names, until: new X509Certificate(next.cert).validTo });
    } catch (error) {
      log.error("api certificate not replaced", { error });
    }
  }

  const timer = setInterval(reload, reloadMs);
  timer.unref();
  return { certificates, reload, close: () => clearInterval(timer) };
}

function readPair({ certFile, keyFile }: ApiCertificateFiles): KeyPair {
  const cert = readPem("HOLDFAST_API_CERT_FILE", certFile);
  const key = readPem("HOLDFAST_API_CERT_KEY_FILE", keyFile);
  if (
    !parsed("HOLDFAST_API_CERT_FILE", () => new X509Certificate(cert)).checkPrivateKey(
      parsed("HOLDFAST_API_CERT_KEY_FILE", () => createPrivateKey(key)),
    )
  )
    throw new Error("HOLDFAST_API_CERT_KEY_FILE: is not the key of the certificate in HOLDFAST_API_CERT_FILE");
  return { cert, key };
}

function readPem(setting: string, path: string): string {
  if (path === "")
    throw new Error(`${setting}: is missing; set both the file of the certificate and the file of its key`);
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new Error(`${setting}: ${path} cannot be read`, { cause: error });
  }
}

/** Parsing errors of keys could quote the key, so they are not passed on. */
function parsed<T>(setting: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new Error(`${setting}: the file has no valid PEM`);
  }
}

/** Names of the certificate, such as `db.example.com` or `*.example.com`. Throws an Error if it has none. */
function namesOf({ cert }: KeyPair): string[] {
  const { subjectAltName = "" } = new X509Certificate(cert);
  const names = subjectAltName.split(", ").flatMap((each) => (each.startsWith("DNS:") ? [each.slice(4)] : []));
  if (names.length === 0) throw new Error("HOLDFAST_API_CERT_FILE: the certificate has no DNS name");
  return names;
}

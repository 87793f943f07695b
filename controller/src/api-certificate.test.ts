import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openApiCertificate } from "./api-certificate.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-api-certificate-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Files with a new certificate of these names, made by openssl. */
function filesOf(base: string, names: string) {
  const certFile = join(directory, `${base}.crt`);
  const keyFile = join(directory, `${base}.key`);
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", keyFile];
  const extension = names === "" ? [] : ["-addext", `subjectAltName=${names}`];
  execFileSync("openssl", ["req", "-x509", ...curve, "-subj", "/CN=test", "-out", certFile, ...extension], {
    stdio: "ignore",
  });
  return { certFile, keyFile };
}

function logOf() {
  const lines: string[] = [];
  const write = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  return { lines, info: write, error: write };
}

test("a certificate is served for its names, and a new one takes its place without a restart", () => {
  const files = filesOf("a", "DNS:db.example.com,DNS:*.example.net,IP:192.0.2.1");
  const log = logOf();
  const own = openApiCertificate(files, log);
  const { certificates } = own;
  const before = certificates.find("DB.example.com");
  expect(before).toBeDefined();
  expect(certificates.find("api.example.net")).toBeDefined();
  expect([certificates.find("example.org"), certificates.find("192.0.2.1")]).toEqual([undefined, undefined]);
  own.reload();
  expect(certificates.find("db.example.com")).toBe(before);

  const next = filesOf("b", "DNS:db.example.com");
  writeFileSync(files.certFile, readFileSync(next.certFile));
  // Between the two files, the pair does not match.
  own.reload();
  expect(certificates.find("db.example.com")).toBe(before);
  expect(log.lines.at(-1)).toContain("api certificate not replaced");
  writeFileSync(files.keyFile, readFileSync(next.keyFile));
  own.reload();
  expect(certificates.find("db.example.com")).not.toBe(before);
  expect(certificates.find("api.example.net")).toBeUndefined();
  expect(log.lines.at(-1)).toContain("api certificate replaced");
  own.close();
  expect(log.lines.join()).not.toContain("PRIVATE");
});

test("files without a certificate and its key are refused with the setting, and without their text", () => {
  const good = filesOf("good", "DNS:db.example.com");
  const other = filesOf("other", "DNS:db.example.com");
  const nameless = filesOf("nameless", "");
  const text = join(directory, "text");
  writeFileSync(text, "secret text");
  const log = logOf();
  const refused = (certFile: string, keyFile: string) => {
    try {
      openApiCertificate({ certFile, keyFile }, log).close();
      return "accepted";
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(refused("", "")).toBe("accepted");
  expect(refused(good.certFile, "")).toContain("HOLDFAST_API_CERT_KEY_FILE: is missing");
  expect(refused("", good.keyFile)).toContain("HOLDFAST_API_CERT_FILE: is missing");
  expect(refused(join(directory, "absent"), good.keyFile)).toContain("absent cannot be read");
  expect(refused(text, good.keyFile)).toContain("HOLDFAST_API_CERT_FILE: the file has no valid PEM");
  expect(refused(good.certFile, text)).toContain("HOLDFAST_API_CERT_KEY_FILE: the file has no valid PEM");
  expect(refused(good.certFile, other.keyFile)).toContain("is not the key of the certificate");
  expect(refused(nameless.certFile, nameless.keyFile)).toContain("the certificate has no DNS name");
});

test("files that another program writes may be absent at the start", () => {
  const next = filesOf("later", "DNS:db.example.com");
  const files = { certFile: join(directory, "fullchain.pem"), keyFile: join(directory, "privkey.pem") };
  const log = logOf();
  expect(() => openApiCertificate(files, log)).toThrow("cannot be read");
  const own = openApiCertificate({ ...files, isAwaited: true }, log);
  own.reload();
  expect(own.certificates.find("db.example.com")).toBeUndefined();
  expect(log.lines).toEqual([]);
  writeFileSync(files.keyFile, readFileSync(next.keyFile));
  writeFileSync(files.certFile, readFileSync(next.certFile));
  own.reload();
  expect(own.certificates.find("db.example.com")).toBeDefined();
  own.close();
});

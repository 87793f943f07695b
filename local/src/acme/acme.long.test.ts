import { X509Certificate } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";
import { type Pebble, pebbleProgram, startPebble } from "@holdfast/testing/servers/pebble.ts";
import { certificateFiles, renewalTime, storeCertificate } from "./certificate-store.ts";

const program = await pebbleProgram();

describe.skipIf(program.path === undefined)(`certificates of ${program.title}`, { timeout: 180_000 }, () => {
  let pebble: Pebble;
  let directory: string;
  beforeAll(async () => {
    pebble = await startPebble(program.path ?? "");
    directory = mkdtempSync(join(tmpdir(), "holdfast-acme-"));
  });
  afterAll(async () => {
    await pebble?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Runs the process until it prints `ready`, and ends it. */
  async function runUntil(ready: RegExp, names: string, state = directory): Promise<void> {
    const settings = [
      `NODE_EXTRA_CA_CERTS=${pebble.caFile}`,
      `HOLDFAST_ACME_DIRECTORY=${pebble.directoryUrl}`,
      "HOLDFAST_ACME_EMAIL=admin@example.com",
      `HOLDFAST_ACME_NAMES=${names}`,
      `HOLDFAST_ACME_LISTEN=127.0.0.1:${pebble.httpPort}`,
      `HOLDFAST_ACME_STATE_DIR=${state}`,
    ];
    const main = join(import.meta.dirname, "main.ts");
    const child = await startTemporaryProcess({ command: "env", args: [...settings, process.execPath, main] }, ready);
    await child.end("SIGTERM");
  }

  it("obtains a certificate for all names, with its chain and key", async () => {
    await runUntil(/certificate obtained/, "db.example.com,api.example.com");
    const files = certificateFiles(directory);
    const text = readFileSync(files.certificate, "utf8");
    const certificate = new X509Certificate(text);
    expect(certificate.subjectAltName?.split(", ").toSorted()).toEqual(["DNS:api.example.com", "DNS:db.example.com"]);
    expect(text.match(/BEGIN CERTIFICATE/g)?.length).toBeGreaterThan(1);
    expect(statSync(files.key).mode & 0o777).toBe(0o600);
    expect(renewalTime(directory, ["db.example.com"])).toBeGreaterThan(Date.now());
  });

  it("obtains another one for another name, with the same account", async () => {
    const account = readFileSync(join(directory, "account.key"), "utf8");
    const before = readFileSync(certificateFiles(directory).certificate, "utf8");
    await runUntil(/certificate obtained/, "db.example.com,new.example.com");
    expect(readFileSync(certificateFiles(directory).certificate, "utf8")).not.toBe(before);
    expect(readFileSync(join(directory, "account.key"), "utf8")).toBe(account);
  });

  it("leaves the certificate as it is when the port of the challenge is taken, and says why", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(pebble.httpPort, "127.0.0.1", () => resolve()));
    const before = readFileSync(certificateFiles(directory).certificate, "utf8");
    try {
      await runUntil(/EADDRINUSE.*certificate not obtained/s, "other.example.com");
    } finally {
      await new Promise((resolve) => other.close(resolve));
    }
    expect(readFileSync(certificateFiles(directory).certificate, "utf8")).toBe(before);
  });

  it("stores nothing for a name that the authority refuses", async () => {
    const state = join(directory, "refused");
    await runUntil(/certificate not obtained/, "not_a_name", state);
    expect(existsSync(certificateFiles(state).certificate)).toBe(false);
  });

  it("renews after two thirds of the life", () => {
    const copy = mkdtempSync(join(directory, "copy-"));
    const text = readFileSync(certificateFiles(directory).certificate, "utf8");
    storeCertificate(copy, text, "key");
    const { validFromDate, validToDate } = new X509Certificate(text);
    const life = validToDate.getTime() - validFromDate.getTime();
    expect(renewalTime(copy, ["db.example.com"])).toBe(validFromDate.getTime() + (life * 2) / 3);
    expect(renewalTime(copy, ["absent.example.com"])).toBe(0);
    expect(renewalTime(join(directory, "none"), ["db.example.com"])).toBe(0);
  });
});

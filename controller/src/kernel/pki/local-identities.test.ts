import { X509Certificate, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@holdfast/common/clock.ts";
import { eachDataPlane } from "@holdfast/common/data-planes.ts";
import { fingerprintOf } from "@holdfast/common/fingerprint.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createSealer } from "../secrets/sealer.ts";
import { createAuthority, type InstallationAuthority } from "./create-authority.ts";
import { maintainLocalIdentities } from "./local-identities.ts";

const directory = mkdtempSync(join(tmpdir(), "local-identities-"));
const caFile = join(directory, "ca.pem");
const dns = join(directory, "dns");
let fixture: TestStore;
let authority: InstallationAuthority;
beforeAll(async () => {
  fixture = await startTestStore();
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const parts = { store: fixture.store, sealer, clock: systemClock, log: silentLog };
  authority = await createAuthority({ ...parts, installationId: "i" });
});
afterAll(async () => {
  authority?.close();
  await fixture?.close();
  rmSync(directory, { recursive: true, force: true });
});

test("a generation is reported once all files have it, also after a failed write", async () => {
  const generations: number[] = [];
  const retained = await maintainLocalIdentities({
    authority,
    caFile,
    directories: { ...eachDataPlane(() => ""), dns },
    certificateNames: [
      { dataPlane: "dns", names: ["dns.example.com", "192.0.2.7"] },
      { dataPlane: "issuer", names: ["issuer.example.com"] },
    ],
    onWritten: (generation) => generations.push(generation),
    clock: systemClock,
    log: silentLog,
  });
  // The certificate has the contributed names of its data plane, and of no other.
  const { subjectAltName } = new X509Certificate(read(join(dns, "cert.pem")));
  expect(subjectAltName).toContain("DNS:localhost, DNS:dns.example.com, IP Address:127.0.0.1, IP Address:192.0.2.7");
  expect(subjectAltName).not.toContain("issuer.example.com");
  const first = authority.generation;
  expect(generations).toEqual([first]);
  await authority.beginRotation(0);
  await waitUntil("two are trusted", () => generations.at(-1) === authority.generation);
  expect(read(join(dns, "ca.pem")).match(/BEGIN/g)).toHaveLength(2);

  rmSync(dns, { recursive: true });
  writeFileSync(dns, "in its way");
  await authority.rotate("trusted");
  await waitUntil("one file is written", () => read(caFile) === authority.trustBundle);
  expect(generations.at(-1)).toBe(first + 1);
  rmSync(dns);
  await waitUntil("all are written", () => generations.at(-1) === authority.generation);
  const [, signer = ""] = read(join(dns, "cert.pem")).split(/(?<=END CERTIFICATE-----\n)/);
  expect(fingerprintOf(new X509Certificate(signer).raw)).toBe(authority.fingerprint);
  retained.close();
});

function read(file: string): string {
  return readFileSync(file, "utf8");
}

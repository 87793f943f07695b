import { X509Certificate } from "node:crypto";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRenewedIdentity } from "@holdfast/mtls/renewed-identity.ts";
import { newCertificateRequest, opensslText } from "@holdfast/testing/controller/certificate-request.ts";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { newKeys } from "@holdfast/testing/machines/test-agent.ts";
import { type NewAudit, outboxKeyOf } from "../store/outbox-entry.ts";
import { createSealer } from "../secrets/sealer.ts";
import { createEtcdStore } from "../store/etcd-store.ts";
import type { Store } from "../store/store.ts";
import { createUnitOfWork } from "../store/unit-of-work.ts";
import { authorityKey } from "./authority-record.ts";
import { createAuthority, type InstallationAuthority } from "./create-authority.ts";

const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 7)]]) });
const audit: NewAudit = {
  organizationId: "",
  actor: "user:admin",
  source: "127.0.0.1",
  action: "authority.rotate",
  objectKind: "organization",
  objectId: "",
  result: "ok",
  requestId: "r-1",
};
const deps = { sealer, installationId: "inst", clock: systemClock, log: silentLog };
let etcd: TestEtcd;
let store: Store;
let authority: InstallationAuthority;

beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  authority = await createAuthority({ ...deps, store });
});
afterAll(async () => {
  authority?.close();
  await store?.close();
  await etcd?.stop();
});

test("twenty controllers that start concurrently create one authority with a sealed key", async () => {
  const all = await Promise.all(Array.from({ length: 20 }, () => createAuthority({ ...deps, store })));
  expect(new Set(all.map((each) => each.fingerprint))).toEqual(new Set([authority.fingerprint]));
  for (const each of all) each.close();
  const record = await store.get(authorityKey);
  expect(record?.value).toContain("sealed.v1.");
  expect(record?.value).not.toContain("PRIVATE KEY");
});

test("a machine's certificate has its identity and ignores the request's names", async () => {
  const csr = await newCertificateRequest(await newKeys(), "postgres.evil.test");
  const issued = await authority.issueIdentity(csr, { kind: "machine", id: "m-1" });
  const leaf = new X509Certificate(issued.chain[0] ?? Buffer.alloc(0));
  expect(leaf.subjectAltName).toBe("URI:holdfast://inst/machine/m-1");
  expect(leaf.subject).toBe("CN=m-1");
  expect(leaf.serialNumber.toLowerCase()).toBe(issued.serial);
  expect(leaf.checkIssued(new X509Certificate(authority.trustBundle))).toBe(true);
  expect(leaf.verify(new X509Certificate(authority.trustBundle).publicKey)).toBe(true);
  expect(Date.parse(leaf.validFrom)).toBeLessThanOrEqual(Date.now() - 59_000);
  const text = await opensslText(leaf.toString());
  expect(text).toContain("TLS Web Client Authentication");
  expect(text).toContain("CA:FALSE");
});

test("a server certificate has exactly the requested names, and no client usage", async () => {
  const csr = await newCertificateRequest(await newKeys(), "x");
  const issued = await authority.issueServer(csr, ["shop-1.local.holdfast.test", "shop-1-node-1.local.holdfast.test"]);
  const leaf = new X509Certificate(issued.chain[0] ?? Buffer.alloc(0));
  expect(leaf.subjectAltName).toBe("DNS:shop-1.local.holdfast.test, DNS:shop-1-node-1.local.holdfast.test");
  expect(await opensslText(leaf.toString())).not.toContain("Client Authentication");
});

test("a member's certificate can connect to members, but has no identity", async () => {
  const csr = await newCertificateRequest(await newKeys(), "x");
  const issued = await authority.issueServer(csr, ["shop-1.local.holdfast.test"], "node-1");
  const leaf = new X509Certificate(issued.chain[0] ?? Buffer.alloc(0));
  expect(leaf.subject).toBe("CN=node-1");
  expect(leaf.subjectAltName).toBe("DNS:shop-1.local.holdfast.test");
  expect(await opensslText(leaf.toString())).toContain("Client Authentication");
});

test("a request without a valid signature is refused", async () => {
  const csr = await newCertificateRequest(await newKeys(), "x");
  const forged = Uint8Array.from(csr);
  forged.set([(forged.at(-1) ?? 0) ^ 1], forged.length - 1);
  await expect(authority.issueServer(forged, ["a.test"])).rejects.toThrow("not signed by its own key");
  await expect(authority.issueServer(Buffer.from("junk"), ["a.test"])).rejects.toThrow("not a PKCS #10 request");
});

test("two authorities are trusted on every controller until the old one is dropped", async () => {
  const other = await createAuthority({ ...deps, store });
  const { fingerprint: old, generation } = authority;
  expect(await authority.beginRotation(60_000)).toBe(true);
  expect(await authority.beginRotation(60_000)).toBe(false);
  await expect.poll(() => other.trustBundle.match(/BEGIN/g)).toHaveLength(2);
  expect(other.fingerprint).toBe(old);
  expect(await authority.rotate("renewed")).toBe(false);
  expect(await Promise.all([authority.rotate("trusted"), other.rotate("trusted")])).toContain(false);
  await expect.poll(() => other.fingerprint).not.toBe(old);
  expect(await other.rotate("cancelled")).toBe(false);
  expect(await other.rotate("renewed")).toBe(true);
  expect(other.trustBundle.match(/BEGIN/g)).toHaveLength(1);
  expect(other.generation).toBe(generation + 3);
  await expect.poll(() => authority.record).toEqual(other.record);
  other.close();
});

test("a canceled rotation leaves the previous authority", async () => {
  const { fingerprint } = authority;
  await authority.beginRotation(60_000);
  expect(await authority.rotate("cancelled")).toBe(true);
  expect(authority.record.authorities).toHaveLength(1);
  expect(authority.fingerprint).toBe(fingerprint);
});

test("a rotation is committed together with its audit entry, or not at all", async () => {
  const begin = (admit: () => void) => () => {
    const unit = createUnitOfWork(store, { outbox: { admit }, sealer, clock: systemClock, ids: () => "audit-1" });
    unit.audit(audit);
    return unit;
  };
  const before = authority.record;
  const full = begin(() => {
    throw new Error("no room");
  });
  await expect(authority.beginRotation(60_000, full)).rejects.toThrow("no room");
  expect(JSON.parse((await store.get(authorityKey))?.value ?? "")).toEqual(before);
  expect(
    await authority.beginRotation(
      60_000,
      begin(() => undefined),
    ),
  ).toBe(true);
  const [record, entry] = [await store.get(authorityKey), await store.get(outboxKeyOf("audit-1"))];
  expect(entry?.modRevision).toBe(record?.modRevision);
  expect(await authority.rotate("cancelled")).toBe(true);
});

test("a listener's certificate is renewed before it expires", async () => {
  const short = await createAuthority({ ...deps, store, lifetimes: { identityMs: 1_500 } });
  const listener = await createRenewedIdentity({
    authority: short,
    identity: { kind: "controller", id: "c-1" },
    names: ["localhost", "api.holdfast.test"],
    addresses: ["127.0.0.1"],
    clock: systemClock,
    log: silentLog,
  });
  const first = listener.current;
  expect(new X509Certificate(first.certificate).subjectAltName).toBe(
    "URI:holdfast://inst/controller/c-1, DNS:localhost, DNS:api.holdfast.test, IP Address:127.0.0.1",
  );
  await expect.poll(() => listener.current.serial).not.toBe(first.serial);
  listener.close();
  short.close();
});

test("a listener's certificate from a clock that was a day ahead is renewed", async () => {
  let aheadMs = 86_400_000;
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };
  const authority = await createAuthority({ ...deps, store, clock, lifetimes: { identityMs: 1_500 } });
  const listener = await createRenewedIdentity({
    authority,
    identity: { kind: "controller", id: "c-1" },
    names: ["localhost"],
    addresses: [],
    clock,
    log: silentLog,
  });
  aheadMs = 0;
  expect(listener.current.notBefore.getTime()).toBeGreaterThan(clock.now());
  await expect.poll(() => listener.current.notBefore.getTime()).toBeLessThan(clock.now());
  listener.close();
  authority.close();
});

import { randomBytes, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { testHostedApp } from "@holdfast/testing/controller/hosted-app.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { type Pebble, pebbleProgram, startPebble } from "@holdfast/testing/servers/pebble.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { type AppObject, appKind } from "../app/app.ts";
import { type AcmeAccountObject, accountKeyOf, acmeAccountKind } from "./acme-account.ts";
import { type AcmeAuthority, createAcmeAuthority } from "./acme-authority.ts";
import { createCertificateWork } from "./certificate-reconciler.ts";
import { certificateId, type DomainCertificateObject, domainCertificateKind } from "./domain-certificate.ts";
import { createServedCertificates } from "./served-certificates.ts";

// A real authority and a real store; the ingress is a server that responds to the challenges of the store.

const program = await pebbleProgram();
const { signal } = new AbortController();
const lifetimeMs = 600_000;
const domain = "www.shop.example";

describe.skipIf(program.path === undefined)(`certificates of domains by ${program.title}`, { timeout: 120_000 }, () => {
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  let pebble: Pebble;
  let store: TestStore;
  let apps: Collection<AppObject>;
  let accounts: Collection<AcmeAccountObject>;
  let certificates: Collection<DomainCertificateObject>;
  let ingress: Server;
  let hasAddress: boolean | undefined = true;

  beforeAll(async () => {
    [store, pebble] = await Promise.all([
      startTestStore(),
      startPebble(program.path ?? "", { validitySeconds: lifetimeMs / 1_000 }),
    ]);
    apps = createCollection(store.store, appKind);
    accounts = createCollection(store.store, acmeAccountKind);
    certificates = createCollection(store.store, domainCertificateKind);
    await Promise.all([apps.ready, accounts.ready, certificates.ready]);
    ingress = createServer(({ url = "" }, response) => {
      const open = served().challengesOf("shop", [domain]);
      response.end(open.find(({ token }) => url.endsWith(`/${token}`))?.keyAuthorization ?? "");
    });
    await new Promise<void>((resolve) => ingress.listen(pebble.httpPort, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    ingress?.close();
    for (const each of [apps, accounts, certificates]) each?.close();
    await pebble?.close();
    await store?.close();
  });

  const served = () => createServedCertificates({ certificates, sealer, clock });
  const id = certificateId("shop", "d");
  const statusOf = async () => (await certificates.getCurrent(id))?.object.status;

  /** Another controller, with another client of the same account. */
  function controller(change: (authority: AcmeAuthority) => AcmeAuthority = (authority) => authority) {
    const { directoryUrl } = pebble;
    const authority = createAcmeAuthority({
      directoryUrl,
      email: "admin@holdfast.example",
      authorities: readFileSync(pebble.caFile, "utf8"),
      accountKey: () => accountKeyOf({ accounts, directoryUrl, sealer, begin: () => store.begin(), clock }),
    });
    return createCertificateWork({
      apps,
      certificates,
      authority: change(authority),
      isIssuer: () => false,
      hostOf: () => "shop.apps.holdfast.test",
      hasAddress: async () => hasAddress,
      isServed: async () => true,
      sealer,
      begin: () => store.begin(),
      clock,
      log: silentLog,
    }).reconciler;
  }

  /** The authority performs each call, and the controller ends before it has the response. */
  const endsAfter = (authority: AcmeAuthority): AcmeAuthority => ({
    ...authority,
    begin: (name) => authority.begin(name).then(killed),
    answer: (challenge) => authority.answer(challenge).then(killed),
    finalize: (...args) => authority.finalize(...args).then(killed),
    certificateOf: (url) => authority.certificateOf(url).then(killed),
  });
  function killed(): never {
    throw new Error("killed");
  }

  async function storeApp(object: AppObject): Promise<void> {
    const before = await apps.getCurrent("shop");
    const unit = store.begin();
    if (before === undefined) unit.create(appKind, object);
    else unit.update(appKind, before, object);
    await apps.untilRevision(await unit.commit(), 5_000);
  }

  test("a domain gets one while each of its steps is repeated by another controller after a kill", async () => {
    hasAddress = false;
    await storeApp(shop(true));
    const missing = async () => {
      await controller().reconcile(id, signal);
      return (await statusOf())?.error ?? undefined;
    };
    expect(await waitUntil("an error is stored", missing)).toMatch(/no address: add a CNAME record for shop\.apps/);
    hasAddress = true;
    aheadMs += 61_000;
    let kills = 0;
    const isIssued = async () => {
      await controller(endsAfter)
        .reconcile(id, signal)
        .catch((error: unknown) => {
          expect(String(error)).toContain("killed");
          kills += 1;
        });
      await controller().reconcile(id, signal);
      return served().certificateOf("shop", domain);
    };
    const { chain, key } = await waitUntil("it is issued", isIssued, { withinMs: 60_000 });
    expect(kills).toBeGreaterThan(2);
    expect(new X509Certificate(chain).checkHost(domain)).toBe(domain);
    expect(key).toContain("PRIVATE KEY");
    expect(served().challengesOf("shop", [domain])).toEqual([]);
    expect([...accounts.ids()]).toHaveLength(1);
    expect(JSON.stringify((await certificates.getCurrent(id))?.object)).not.toContain("PRIVATE KEY");
  });

  test("it is renewed when a third of its lifetime remains, and its controller does nothing before", async () => {
    const first = (await statusOf())?.issued;
    const revision = (await certificates.getCurrent(id))?.modRevision;
    await controller().reconcile(id, signal);
    expect((await certificates.getCurrent(id))?.modRevision).toBe(revision);
    aheadMs += (lifetimeMs * 2) / 3;
    const renewed = async () => {
      await controller().reconcile(id, signal);
      const next = (await statusOf())?.issued;
      return next !== undefined && next?.chain !== first?.chain ? next : undefined;
    };
    const next = await waitUntil("it is renewed", renewed, { withinMs: 60_000 });
    expect(next?.sealedKey).not.toBe(first?.sealedKey);
  });

  test("it remains while the authority is away, and is removed an hour after its domain", async () => {
    aheadMs += (lifetimeMs * 2) / 3;
    const away = controller((authority) => ({
      ...authority,
      begin: () => createAcmeAuthority({ ...awaySettings, directoryUrl: "https://127.0.0.1:9/dir" }).begin(domain),
    }));
    await away.reconcile(id, signal);
    expect(await statusOf()).toMatchObject({
      issued: expect.anything(),
      failures: 0,
      error: "The certificate authority does not respond.",
    });
    await storeApp(shop(false));
    await controller().reconcile(id, signal);
    expect(await statusOf()).toBeDefined();
    aheadMs += 3_600_000;
    await controller().reconcile(id, signal);
    expect(await statusOf()).toBeUndefined();
  });
});

const awaySettings = { email: "admin@holdfast.example", authorities: "", accountKey: async () => "" };

/** The app, whose domain is verified or was deleted. */
function shop(hasDomain: boolean): AppObject {
  const app = testHostedApp({ servingId: "d" });
  const verified = { id: "d", name: domain, token: "t", createdAt: 1, verifiedAt: 1 };
  return {
    ...app,
    spec: { ...app.spec, domains: hasDomain ? [verified] : [] },
  };
}

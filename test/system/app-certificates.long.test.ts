import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect } from "node:tls";
import {
  type DomainCertificateObject,
  domainCertificateKind,
} from "@holdfast/controller/app/certificate/domain-certificate.ts";
import { prefixOf } from "@holdfast/controller/kernel/store/resource.ts";
import type { App, AppDomain, AppDomainCertificate } from "@holdfast/sdk/index.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { startTestDnsServer, type TestDnsServer } from "@holdfast/testing/network/dns-zone.ts";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { createHostedApps, type HostedApps, pushAppImage } from "@holdfast/testing/platform/hosted-apps.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot, programDirectory } from "@holdfast/testing/platform/platform-software.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { type AppImages, createAppImages } from "@holdfast/testing/servers/app-images.ts";
import { type Pebble, pebbleProgram, startPebble } from "@holdfast/testing/servers/pebble.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Answer } from "dns-packet";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

// Domains of a hosted app with certificates of a public authority, which validates them at the ingress.

const program = await pebbleProgram();
const recipe = asRoot ? await requireRecipes(import.meta.filename, "apps") : "needs root: containers of a machine";
const skipped = program.path === undefined ? program.title : recipe;
const withinMs = 120_000;
const validitySeconds = 90;
const refused = "refused.shop.example";

describe.skipIf(skipped !== undefined)("certificates of domains by a public authority", { timeout: 300_000 }, () => {
  /** Records of users' domains, by their name. */
  const records = new Map<string, readonly Answer[]>();
  let pebble: Pebble;
  let dns: TestDnsServer;
  let platform: Platform;
  let directory: string;
  let apps: HostedApps;
  let app: App;

  beforeAll(async () => {
    directory = programDirectory("holdfast-push");
    dns = await startTestDnsServer((name) => records.get(name) ?? []);
    pebble = await startPebble(program.path ?? "", { validitySeconds, refused: [refused] });
    const environment = {
      HOLDFAST_DOMAINS_ACME_EMAIL: "admin@holdfast.example",
      HOLDFAST_ACME_DIRECTORY: pebble.directoryUrl,
      HOLDFAST_ACME_CA_FILE: pebble.caFile,
      HOLDFAST_INGRESS_REDIRECT_LISTEN: `127.0.0.1:${pebble.httpPort}`,
      HOLDFAST_DOMAIN_RESOLVERS: dns.address,
    };
    let images: AppImages;
    [platform, images] = await Promise.all([startPlatform({ environment }), createAppImages(directory)]);
    apps = createHostedApps(platform);
    await pushAppImage(platform, images, { name: "shop", tag: "1" });
    app = await apps.createRunning("shop", { image_ref: "shop:1" });
  }, 300_000);
  afterAll(async () => {
    await platform?.remove();
    await pebble?.close();
    await dns?.close();
    await rm(directory, { recursive: true, force: true });
  });

  /** Adds a domain, and verifies it by its record. Name servers have no address of it. */
  async function addDomain(name: string): Promise<AppDomain> {
    const path = `/app-services/${app.id}/domains`;
    const domain = expectStatus(await platform.rest.post<AppDomain>(path, { name }), 201).json;
    const { name: record, value } = domain.verification;
    records.set(record, [{ type: "TXT", name: record, data: value }]);
    expectStatus(await platform.rest.post(`${path}/${domain.id}/verify`), 200);
    return domain;
  }

  function addAddress(name: string): void {
    records.set(name, [{ type: "A", name, data: "127.0.0.1" }]);
  }

  /** The domain's certificate once it is as expected. */
  function certificate(
    { id }: AppDomain,
    isExpected: (found: AppDomainCertificate) => boolean,
  ): Promise<AppDomainCertificate> {
    const found = async () => {
      const current = await apps.get(app.id).catch(() => undefined);
      const one = current?.domains.find((each) => each.id === id)?.certificate;
      return one && isExpected(one) ? one : undefined;
    };
    const describe = async () => JSON.stringify((await apps.get(app.id)).domains);
    return waitUntil("the certificate is as expected", found, { withinMs, everyMs: 250, describe });
  }

  /** The certificate that clients get who trust the authority alone; rejects if it is not valid for the domain. */
  async function servedTo(servername: string): Promise<X509Certificate> {
    const { port } = new URL(app.hosted?.url ?? "");
    const socket = connect({ host: "127.0.0.1", port: Number(port), servername, ca: await pebble.root() });
    try {
      await once(socket, "secureConnect");
      return new X509Certificate(socket.getPeerX509Certificate()?.raw ?? "");
    } finally {
      socket.destroy();
    }
  }

  const isServed = (name: string) => async () => servedTo(name).catch(() => undefined);

  /** The certificate's record in the store. */
  async function stored(domain: AppDomain): Promise<DomainCertificateObject | undefined> {
    const entries = await dumpEtcd(platform.directory);
    const value = entries.get(`${prefixOf(domainCertificateKind)}${app.id}.${domain.id}`);
    return value === undefined ? undefined : domainCertificateKind.parse(value);
  }

  test("a domain gets one once it has an address, and it is renewed", async () => {
    const name = "www.shop.example";
    const domain = await addDomain(name);
    const waiting = await certificate(domain, ({ error }) => error !== null);
    expect(waiting).toMatchObject({ state: "pending", issuer: null, error: expect.stringContaining("no address") });
    addAddress(name);
    const issued = await certificate(domain, ({ state }) => state === "issued");
    expect(issued).toMatchObject({ issuer: expect.stringContaining("Pebble"), error: null });
    const first = await waitUntil("clients get it", isServed(name), { withinMs });
    const isRenewed = async () => {
      const current = await isServed(name)();
      return current !== undefined && current.serialNumber !== first.serialNumber ? current : undefined;
    };
    const next = await waitUntil("clients get the next one", isRenewed, { withinMs: validitySeconds * 1_000 });
    expect(next.validToDate.getTime()).toBeGreaterThan(first.validToDate.getTime());
    expect((await stored(domain))?.status.issued?.sealedKey).toMatch(/^sealed\./);
  });

  test("an order continues after its controllers were killed", async () => {
    const name = "kill.shop.example";
    addAddress(name);
    const domain = await addDomain(name);
    const order = await waitUntil("it is ordered", async () => (await stored(domain))?.status.order ?? undefined, {
      withinMs,
      everyMs: 20,
    });
    pebble.pause();
    for (const controller of platform.processes().controllers) killImmediately(controller);
    const responds = async () => (await platform.rest.get("/me").catch(() => undefined))?.status === 200;
    await waitUntil("another controller responds", responds, { withinMs });
    expect((await stored(domain))?.status.order).toEqual(order);
    pebble.resume();
    await certificate(domain, ({ state }) => state === "issued");
    expect((await waitUntil("clients get it", isServed(name), { withinMs })).checkHost(name)).toBe(name);
    // The key of that order, which no other one has.
    expect((await stored(domain))?.status.issued?.sealedKey).toBe(order.sealedKey);
  });

  test("the reason of a refusal is in the domain, and another attempt follows", async () => {
    addAddress(refused);
    const domain = await addDomain(refused);
    const failed = await certificate(domain, ({ state }) => state === "failed");
    expect(failed).toMatchObject({ issuer: null, error: expect.stringMatching(/\S/) });
    expect(Date.parse(failed.next_attempt_at ?? "")).toBeGreaterThan(Date.now());
  });
});

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@holdfast/common/clock.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { ZoneService } from "@holdfast/proto/holdfast/dns/v1/zone_pb.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import {
  installationId,
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import type { Store } from "#kernel/store/store.ts";
import { createUnitOfWork, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { dnsRecordKind, type DnsRecordObject } from "./dns-record.ts";
import { createDnsServerHealth } from "./dns-server-health.ts";
import { createRecordVerifier, queryAddresses, type RecordVerifier } from "./verify-record.ts";
import { createZoneFeed, type ZoneFeed } from "./zone-feed.ts";
import { createZoneRecords, type ZoneRecords } from "./zone-records.ts";
import { createListenerReports } from "#kernel/runtime/listener-reports.ts";
import { createZoneService, type ServedZone } from "./zone-service.ts";

const origin = "local.holdfast.test";
const owner = { kind: "managed-service", id: "s-1" };
let installation: TestInstallation;
let controller: TestController;
let store: Store;
let feed: ZoneFeed;
let collection: Collection<DnsRecordObject>;
let records: ZoneRecords;
let verifier: RecordVerifier;
let directory: string;
let dnsAddress: string;
let dns: ChildProcess | undefined;

beforeAll(async () => {
  installation = await newInstallation();
  store = createEtcdStore({ hosts: [installation.etcd.url], log: silentLog });
  feed = createZoneFeed(store);
  collection = createCollection(store, dnsRecordKind);
  await collection.ready;
  records = createZoneRecords(collection, systemClock);
  // Both exist after a restart as well.
  const [port = 0, dnsPort] = await freePorts(2);
  const started = await startZoneController("c-1", port);
  controller = started.controller;
  verifier = started.verifier;
  directory = await mkdtemp(join(tmpdir(), "holdfast-zone-"));
  const identity = join(directory, "identity");
  await mkdir(identity);
  const own = await controller.authority.createIdentity({ kind: "dns", id: "dns-1" }, []);
  await writeFile(join(identity, "key.pem"), own.privateKey);
  await writeFile(join(identity, "cert.pem"), own.certificate);
  await writeFile(join(identity, "ca.pem"), controller.authority.trustBundle);
  dnsAddress = `127.0.0.1:${dnsPort}`;
  startDns();
});
afterAll(async () => {
  dns?.kill("SIGKILL");
  records?.close();
  collection?.close();
  feed?.close();
  await controller?.close();
  await store?.close();
  await installation?.close();
  await rm(directory, { recursive: true, force: true });
});

/** Acknowledgments to the newest controller. */
let controllerRegistry: ControllerRegistry;

async function startZoneController(id: string, port = 0) {
  let zone: ServedZone | undefined;
  const services = (registry: ControllerRegistry) => {
    controllerRegistry = registry;
    const listenerReports = createListenerReports(controllerRegistry, silentLog);
    zone = createZoneService({ installationId, feed, origin, controllerRegistry, listenerReports, log: silentLog });
    return [zone];
  };
  const started = await startController(installation, id, { services, port });
  if (zone === undefined) throw new Error("a fleet has its services once it is started");
  const { monotonicMs } = systemClock;
  const health = createDnsServerHealth({ servers: [], monotonicMs, log: silentLog });
  return { controller: started, verifier: createRecordVerifier(zone, health) };
}

function startDns(configured = controller.address): void {
  dns = spawn(process.execPath, [join(import.meta.dirname, "../../../../dns/src/main.ts")], {
    stdio: "ignore",
    env: {
      HOLDFAST_DNS_LISTEN: dnsAddress,
      HOLDFAST_DNS_DIR: join(directory, "dns"),
      HOLDFAST_CONTROLLERS: configured,
      HOLDFAST_DNS_IDENTITY_DIR: join(directory, "identity"),
      HOLDFAST_INSTALLATION_ID: installationId,
    },
  });
}

async function commit(fill: (work: UnitOfWork) => boolean): Promise<void> {
  const work = createUnitOfWork(store, {
    outbox: { admit() {} },
    sealer: controller.sealer,
    clock: systemClock,
    ids: uuidv7,
  });
  if (fill(work)) await collection.untilRevision(await work.commit(), 60_000);
}

const desired = (label: string, ...addresses: string[]) => ({ name: `${label}.${origin}`, addresses, ttlS: 1 });
const signal = () => AbortSignal.timeout(60_000);

test("names are served as soon as they are stored, and follow changes and deletions", async () => {
  await commit((work) =>
    records.put(work, owner, [desired("shop-1", "127.77.0.5"), desired("shop-1-n1", "127.77.0.5")]),
  );
  await verifier.verifyRecord([dnsAddress], `shop-1.${origin}`, ["127.77.0.5"], signal());
  await commit((work) => records.put(work, owner, [desired("shop-1", "127.77.0.6", "fd00::6")]));
  await verifier.verifyRecord([dnsAddress], `shop-1.${origin}`, ["fd00::6", "127.77.0.6"], signal());
  await verifier.verifyRecord([dnsAddress], `shop-1-n1.${origin}`, [], signal());
  expect(records.of(owner).map(({ metadata }) => metadata.id)).toEqual([`shop-1.${origin}`]);
  await commit((work) => {
    const changed = records.put(work, owner, [desired("shop-1", "127.77.0.6", "fd00::6")]);
    expect(changed).toBe(false);
    return changed;
  });
  await commit((work) => records.remove(work, owner));
  await verifier.verifyRecord([dnsAddress], `shop-1.${origin}`, [], signal());
});

test("the listeners of a DNS server are registered for every controller", async () => {
  const reported = () => controllerRegistry.controllers().flatMap(({ listeners = [] }) => listeners);
  await waitUntil("the server has reported", () => reported().includes(dnsAddress), {
    describe: () => reported().join(),
  });
});

/** The zone on disk, from which the DNS server would start. */
async function onDisk(): Promise<string> {
  const files = ["zone.json", "zone.log"].map((name) => join(directory, "dns", name));
  return (await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")))).join("");
}

test("names are served without controllers and etcd, over a restart, and follow again", async () => {
  await commit((work) => records.put(work, owner, [desired("kept", "127.77.0.7")]));
  await verifier.verifyRecord([dnsAddress], `kept.${origin}`, ["127.77.0.7"], signal());
  await expect.poll(onDisk).toContain("127.77.0.7");
  const { port } = controller.fleet;
  await controller.close();
  await installation.etcd.kill();
  dns?.kill("SIGKILL");
  if (dns !== undefined) await once(dns, "exit");
  startDns();
  await expect
    .poll(() => queryAddresses(dnsAddress, `kept.${origin}`, 200, signal()).catch(() => []))
    .toEqual(["127.77.0.7"]);
  await installation.etcd.start();
  const again = await startZoneController("c-1", port);
  controller = again.controller;
  await waitUntil("etcd takes changes again", async () => {
    await commit((work) => records.put(work, owner, [desired("kept", "127.77.0.8")]));
    return true;
  });
  await again.verifier.verifyRecord([dnsAddress], `kept.${origin}`, ["127.77.0.8"], signal());
});

test("a server follows another controller when its own ends, and after a restart", async () => {
  const first = controller.address;
  const second = await startZoneController("c-2");
  await expect.poll(onDisk).toContain(second.controller.address);
  await controller.close();
  controller = second.controller;
  for (const address of ["127.77.0.9", "127.77.0.10"]) {
    await commit((work) => records.put(work, owner, [desired("moved", address)]));
    await second.verifier.verifyRecord([dnsAddress], `moved.${origin}`, [address], signal());
    dns?.kill("SIGKILL");
    if (dns !== undefined) await once(dns, "exit");
    startDns(first);
  }
});

test("verification of a wrong record waits until the signal aborts", async () => {
  const found = verifier.verifyRecord([dnsAddress], `kept.${origin}`, ["127.77.0.99"], AbortSignal.timeout(300));
  await expect(found).rejects.toThrow("timeout");
});

test("a machine may not follow the zone", async () => {
  const client = controller.dial(await controller.newAgent("curious"));
  const { path, requestSerialize, responseDeserialize } = grpcService(ZoneService).follow;
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
  const [error] = (await once(call, "error")) as [{ code: number }];
  expect(error.code).toBe(7);
  client.close();
});

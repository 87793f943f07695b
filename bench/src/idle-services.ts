import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createCursors } from "@holdfast/controller/kernel/page/cursor.ts";
import { createCollections } from "@holdfast/testing/controller/test-collections.ts";
import { pendingSummaries } from "@holdfast/controller/services/maintenance/maintenance-message.ts";
import { createManagedServiceApi } from "@holdfast/controller/services/service/managed-service-api.ts";
import { createServiceAccess } from "@holdfast/controller/services/service/service-access.ts";
import { settled } from "@holdfast/controller/kernel/runtime/reconciler.ts";
import { createRunner } from "@holdfast/controller/kernel/runtime/runner.ts";
import { createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { createBackupContext } from "@holdfast/controller/services/backup/backup-context.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import { keyOf } from "@holdfast/controller/kernel/store/resource.ts";
import { createGateway } from "@holdfast/gateway/gateway.ts";
import { createApiServer } from "@holdfast/https/server.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { startTestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { createRest } from "@holdfast/testing/api/rest.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { uuidv7 } from "uuidv7";
import { median, ms, percentile, print, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";
import { idleService } from "./support/idle-service.ts";
import { managedServiceKind } from "@holdfast/controller/services/service/managed-service.ts";

// Idle services: cost of the resync of a thousand of them, and latency of a list page with more of them. Their objects
// are in a real etcd; collections, runner, API and gateway are the controller's own.
const counts = [100, 1_000, 10_000];
const requests = 300;
const organizationId = "organization-bench";

printHost();
const etcd = await startTestEtcd();
const store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
const collections = createCollections(store);
await collections.ready;
const { services, operations, machines, hosts, nodeImages } = collections;
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const backups = createBackupContext({
  ...collections,
  sealer,
  clock: systemClock,
  idleLogDelayMs: 55_000,
  finalBackupTimeoutMs: 30 * 60_000,
  observation: () => undefined,
});
const { cert, key } = await createTestCertificate();
const server = createApiServer({
  key,
  cert,
  log: silentLog,
  handler: (request, response) => handler(request, response),
});
const baseUrl = `https://localhost:${await server.listen(0, "127.0.0.1")}`;
const handler = openGateway();
const rest = createRest({ baseUrl, ca: cert, authorization: "Basic bench" });

const medians: number[] = [];
for (const count of counts) {
  await fill(count);
  if (count === 1_000) await resync();
  const taken: number[] = [];
  for (let request = 0; request < requests + 50; request += 1) {
    const startedAt = performance.now();
    const { json } = await rest.get<{ services: { id: string }[] }>("/managed-services?limit=50");
    if (request >= 50) taken.push(performance.now() - startedAt);
    if (new Set(json.services.map(({ id }) => id)).size !== 50) throw new Error("a page without its 50 services");
  }
  medians.push(median(taken));
  print(`page of 50 among ${count}: p50 / p99`, `${ms(median(taken))} / ${ms(percentile(taken, 0.99))}`);
}
print("page among 10,000 to page among 100", times((medians[2] ?? 0) / (medians[0] ?? 0)), "flat");
rest.close();
await server.close(100);
collections.close();
await store.close();
await etcd.stop();

async function fill(count: number): Promise<void> {
  while (services.size < count) {
    const some = Array.from({ length: Math.min(100, count - services.size) }, () =>
      idleService(uuidv7(), organizationId),
    );
    const puts = some.map((service) => ({
      key: keyOf(managedServiceKind, service.metadata.id),
      value: JSON.stringify(service),
    }));
    const before = services.size;
    await store.commit({ conditions: [], puts, deletes: [] });
    await waitUntil("the watch delivered them", () => services.size === before + some.length, { everyMs: 2 });
  }
}

/**
 * The resync pass over every key, each second here instead of each half minute. Full reconciles come every ten minutes.
 */
async function resync(): Promise<void> {
  let reconciled = 0;
  const right = { signal: new AbortController().signal, claim: undefined, end: () => undefined };
  const runner = createRunner({
    loops: [
      {
        reconciler: { name: "bench", reconcile: async () => ((reconciled += 1), settled) },
        keys: () => Iterator.from(services.values()).map(({ object }) => object.metadata.id),
        inputs: (id) => `${services.get(id)?.modRevision ?? 0}`,
      },
    ],
    ownership: { owns: () => true, begin: () => right, subscribe: () => ({ close: () => undefined }) },
    clock: systemClock,
    log: silentLog,
    random: Math.random,
    resyncMs: 1_000,
  });
  const idle = await cpuMsIn(5_000);
  runner.start();
  await waitUntil("each was reconciled one time", () => reconciled === services.size);
  const busy = await cpuMsIn(5_000);
  await runner.stop();
  if (reconciled !== services.size) throw new Error("the resync reconciled what had not changed");
  print(`CPU of a resync pass over ${services.size} at rest`, ms((busy - idle) / 5), "<= 100 ms");
}

async function cpuMsIn(durationMs: number): Promise<number> {
  const before = process.cpuUsage();
  await sleep(durationMs);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function openGateway() {
  /** Dependencies that a list does not use. */
  const unused = (): never => {
    throw new Error("a list needs none of this");
  };
  const session = {
    controllerId: "bench",
    connectedAt: 0,
    agentVersion: "bench",
    agentDigest: "",
    keeperProtocol: 0,
    bootId: "boot",
  };
  const observation = { instance: create(InstanceObservationSchema), observedAt: 0, bootId: "boot" };
  const fleet = { session: () => session, observation: () => observation };
  const api = createManagedServiceApi({
    family: "databases",
    begin: unused,
    services,
    operations,
    monitoredOwners: { require: unused },
    consumers: [],
    creation: { create: unused, add: unused, runExclusive: unused },
    serviceMessage: unused,
    access: createServiceAccess({ services, operations }),
    cursors: createCursors(sealer),
    sealer,
    logs: { page: unused },
    backupsOf: backups.backupsOf,
    deleted: { page: unused },
    // Every agent is connected and has reported its engine.
    fleet,
    pendingOf: (service) =>
      pendingSummaries(service, {
        machines,
        hosts,
        nodeImages,
        fleet,
        newestRestorePointOf: backups.serviceBackups.newestRestorePointOf,
        clock: systemClock,
      }),
    catalog: unused as never,
    hosts: unused as never,
    machines: unused as never,
    quotas: unused as never,
    archives: unused as never,
    engines: unused,
    trustBundle: unused,
    clock: systemClock,
    newId: randomUUID,
  });
  const principal = {
    kind: "api_key",
    id: "bench",
    name: "bench",
    organizationId,
    scopes: new Set(["services:*"]),
  } as const;
  return createGateway({
    services: [api],
    authenticator: { authenticate: async () => principal },
    storedResponses: { find: unused, reserve: unused, store: unused },
    reached: unused,
    ready: () => true,
    baseUrl,
    log: silentLog,
    clock: systemClock,
    newId: randomUUID,
  });
}

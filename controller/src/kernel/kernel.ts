import { randomBytes } from "node:crypto";
import { createBootClock } from "@holdfast/common/boot-clock.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { createAutomationPauses, type AutomationPauses } from "./clock/automation-pauses.ts";
import { type History, openHistory } from "./history/history.ts";
import type { MigrationGroup } from "./history/migrate.ts";
import { createHistorySpace, type HistorySpace } from "./history/history-space.ts";
import type { KernelSettings } from "./kernel-settings.ts";
import { openObjectStore } from "./objects/open-object-store.ts";
import type { UrlSigner } from "./objects/url-signer.ts";
import { createProcessMetrics, type ProcessMetrics } from "./metrics/process-metrics.ts";
import { createServiceGauges, type ServiceGauges } from "./metrics/service-gauge.ts";
import { timedStore } from "./metrics/timed-service.ts";
import { createInsertEntries, type EntryPlanner, type InsertEntries } from "./outbox/entry-planner.ts";
import { type AuditedActs, createAuditedActs } from "./outbox/audited-acts.ts";
import { createOutbox, type Outbox } from "./outbox/outbox.ts";
import { createCursors, type Cursors } from "./page/cursor.ts";
import { createAuthority, type InstallationAuthority, lifetimesOf } from "./pki/create-authority.ts";
import { createListenerReports, followListenerFile, type ListenerReports } from "./runtime/listener-reports.ts";
import type { ReconcilerStatus, Runner } from "./runtime/runner.ts";
import { createControllerRegistry, type ControllerRegistry } from "./runtime/controller-registry.ts";
import { createShards, type Shards } from "./runtime/shards.ts";
import { readKeyring, createSealer, type Keyring, type Sealer } from "./secrets/sealer.ts";
import { type CollectionSet, createCollectionSet } from "./store/collection-set.ts";
import { createEtcdMembers, type EtcdMembers, readEtcdCredentials } from "./store/etcd-client.ts";
import { createEtcdSpace, type EtcdSpace } from "./store/etcd-space.ts";
import { createEtcdStore, awaitStore } from "./store/etcd-store.ts";
import { createStoredResponses, type StoredResponses } from "./store/stored-responses.ts";
import { createStoreView, type StoreView } from "./store/store-view.ts";
import type { Store } from "./store/store.ts";
import { createUnitOfWork, type UnitOfWork } from "./store/unit-of-work.ts";
import { createWriteRateLimit } from "./store/write-rate-limit.ts";

/**
 * The base of every group; it depends on no resource. It opens etcd (store), the history and the object store, creates
 * the installation's certificate authority, registers this controller and distributes the keys of reconcilers by
 * shards. Systems open their collections from it and contribute RPCs, control loops and metrics (system.ts).
 */
export interface Kernel {
  readonly controllerId: string;
  readonly installationId: string;
  readonly store: Store;
  /** Age of what the collections and other watches of `store` have. */
  readonly view: Pick<StoreView, "requireCurrent">;
  /** Metrics of this process. */
  readonly metrics: ProcessMetrics;
  /** Metrics of services, contributed by systems. */
  readonly serviceGauges: ServiceGauges;
  readonly history: History;
  readonly objects: ObjectStore;
  /** Signs URLs of single objects; undefined if machines cannot reach the object store. */
  readonly objectUrls: UrlSigner | undefined;
  readonly keyring: Keyring;
  readonly sealer: Sealer;
  readonly authority: InstallationAuthority;
  /** The collections of all kinds. */
  readonly collections: CollectionSet;
  readonly automationPauses: AutomationPauses;
  /** True after a restore of the control plane: machines and hosts may be ahead of the store. */
  readonly storeMayBeBehind: () => boolean;
  /** The live controllers, this one included. */
  readonly controllerRegistry: ControllerRegistry;
  /** The keys that this controller owns. */
  readonly shards: Shards;
  /** Listeners of the installation's processes, published for all controllers. */
  readonly listenerReports: ListenerReports;
  readonly outbox: Outbox;
  /** Audits calls whose effect is not a change of the store. */
  readonly auditedActs: AuditedActs;
  readonly storedResponses: StoredResponses;
  /** Disk usage of etcd. */
  readonly space: EtcdSpace;
  readonly etcdMembers: Pick<EtcdMembers, "listeners">;
  /** Disk usage of the history. */
  readonly historySpace: HistorySpace;
  readonly cursors: Cursors;
  /** Begins a unit of work: one transaction with its events and audit entry. */
  readonly begin: () => UnitOfWork;
  /** Call it once, with the planners of history rows; until then the outbox moves nothing. */
  readonly setEntryPlanners: (planners: readonly EntryPlanner[]) => void;
  /** Call it once, with the runner of all control loops. */
  readonly setRunner: (runner: Pick<Runner, "status">) => void;
  /** The state of this controller's reconcilers; empty until its runner is set. */
  readonly reconcilers: () => readonly ReconcilerStatus[];
  readonly clock: Clock;
  readonly newId: () => string;
  readonly random: () => number;
  readonly log: Log;
  /** Aborted when the controller stops. */
  readonly signal: AbortSignal;
  /** Closes everything; call it after the controller has left the registry. */
  close(): Promise<void>;
}

export interface KernelDeps extends Pick<Kernel, "clock" | "newId" | "random" | "log" | "signal"> {
  readonly settings: KernelSettings;
  readonly migrations: readonly MigrationGroup[];
  /** Runs before any object is read. */
  readonly prepare: (parts: Pick<Kernel, "store" | "sealer" | "clock" | "newId">, signal: AbortSignal) => Promise<void>;
}

/**
 * Silence of one watch that ends by itself while the session lasts: its member of etcd is down, and its stream moves to
 * another one.
 */
const watchAgeMaxMs = 15_000;

/** Resolves when the store responds and the authority is loaded; collections are opened afterwards, by systems. */
export async function openKernel(deps: KernelDeps): Promise<Kernel> {
  const { settings, clock, newId, random, log, signal } = deps;
  const { installationId } = settings;
  const controllerId = settings.controllerId || `controller-${randomBytes(6).toString("hex")}`;
  const keyring = await readKeyring(settings.masterKeyFile);
  const sealer: Sealer = { ...createSealer(keyring), mayStore: (form) => controllerRegistry.allRead(form) };
  const credentials = await readEtcdCredentials(settings);
  const metrics = createProcessMetrics();
  const serviceGauges = createServiceGauges();
  const etcd = { hosts: settings.etcd, ...(credentials && { credentials }) };
  const view = createStoreView({
    store: timedStore(createEtcdStore({ ...etcd, log, clock }), metrics),
    bootMs: createBootClock(),
    maxAgeMs: watchAgeMaxMs,
    hasSession: () => controllerRegistry.lease() !== undefined,
  });
  const { store } = view;
  const quotaBytes = settings.etcdQuota;
  const space = createEtcdSpace({ ...etcd, quotaBytes, log });
  const etcdMembers = createEtcdMembers({ ...etcd, log });
  await awaitStore(store, log, signal);
  // Connections to targets of users begin after this, and must not reach etcd. If the list cannot be read now, it is
  // read again within a minute.
  await etcdMembers
    .refresh()
    .catch((error: unknown) => log.warn("etcd's members not listed", { error: String(error) }));
  const lifetimes = lifetimesOf(settings.machineCertificateS);
  const authorityReady = createAuthority({ store, sealer, installationId, clock, log, lifetimes });
  await deps.prepare({ store, sealer, clock, newId }, signal);
  const collections = createCollectionSet(store);
  const automationPauses = createAutomationPauses({ store, clock, log });
  const history = await openHistory(settings, { clock, log, migrations: deps.migrations });
  const historySpace = createHistorySpace({ database: history.database, quotaBytes: settings.historyQuota, log });
  const controllerRegistry = createControllerRegistry({ store, id: controllerId, leaseS: settings.leaseS, clock, log });
  let hadSession = false;
  controllerRegistry.subscribe(() => {
    const hasSession = controllerRegistry.lease() !== undefined;
    if (hadSession && !hasSession) view.endSession();
    hadSession = hasSession;
  });
  const listenerReports = createListenerReports(controllerRegistry, log);
  const storeListeners = followListenerFile({
    process: "store",
    directory: settings.storeIdentityDir,
    reports: listenerReports,
    log,
  });
  const shards = createShards({ store, controllerRegistry, cache: collections, log });
  const inserter = Promise.withResolvers<InsertEntries>();
  const historyInserter = {
    insert: async (...entries: Parameters<InsertEntries>) => (await inserter.promise)(...entries),
  };
  const outbox = createOutbox({ store, history: historyInserter, ownership: shards, clock, ids: newId, random, log });
  const storedResponses = createStoredResponses({ store, sealer, clock });
  const { writtenBytes } = settings;
  const writeRateLimit = writtenBytes === 0 ? undefined : createWriteRateLimit(writtenBytes, clock.monotonicMs);
  const authority = await authorityReady;
  const { objects, signer } = await openObjectStore(settings, {
    trustBundle: () => authority.trustBundle,
    now: clock.now,
  });
  let runner: Pick<Runner, "status"> | undefined;
  return {
    controllerId,
    installationId,
    store,
    view,
    metrics,
    serviceGauges,
    history,
    objects,
    objectUrls: signer,
    keyring,
    sealer,
    authority,
    collections,
    automationPauses,
    storeMayBeBehind: () => automationPauses.list().some(({ kind }) => kind === "restored"),
    controllerRegistry,
    shards,
    listenerReports,
    outbox,
    auditedActs: createAuditedActs({ store, history: historyInserter, outbox, clock, ids: newId, log }),
    storedResponses,
    space,
    etcdMembers,
    historySpace,
    cursors: createCursors(sealer),
    begin: () =>
      createUnitOfWork(store, {
        outbox,
        ...(writeRateLimit && { writeRateLimit }),
        sealer,
        clock,
        ids: newId,
      }),
    setEntryPlanners: (planners) => inserter.resolve(createInsertEntries(history, planners)),
    setRunner(created) {
      runner = created;
    },
    reconcilers: () => runner?.status() ?? [],
    clock,
    newId,
    random,
    log,
    signal,
    async close() {
      const pollers = [storeListeners, etcdMembers, space, historySpace];
      for (const part of [automationPauses, authority, collections, storedResponses, ...pollers]) part.close();
      await Promise.all([history.close(), store.close()]);
    },
  };
}

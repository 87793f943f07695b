import { randomBytes } from "node:crypto";
import { inBackground } from "@holdfast/common/background.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { eachDataPlane } from "@holdfast/common/data-planes.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createHolds, type Holds } from "./clock/holds.ts";
import type { History } from "./history/history.ts";
import { createHistorySpace, type HistorySpace } from "./history/history-space.ts";
import { openHistory } from "./history/open-history.ts";
import type { KernelSettings } from "./kernel-settings.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { openObjectStore } from "./objects/open-object-store.ts";
import type { UrlSigner } from "./objects/url-signer.ts";
import { createProcessMetrics, type ProcessMetrics } from "./metrics/process-metrics.ts";
import { createServiceFigures, type ServiceFigures } from "./metrics/service-figure.ts";
import { timedStore } from "./metrics/timed-store.ts";
import { createInsertEntries, type EntryPlanner, type InsertEntries } from "./outbox/entry-planner.ts";
import { createOutbox, type Outbox } from "./outbox/outbox.ts";
import { createCursors, type Cursors } from "./page/cursor.ts";
import { createAuthority, type InstallationAuthority, lifetimesOf } from "./pki/create-authority.ts";
import { keepLocalIdentities } from "./pki/local-identities.ts";
import { createListenerReports, type ListenerReports } from "./runtime/listener-reports.ts";
import { createMembership, type Membership } from "./runtime/membership.ts";
import { createShards, type Shards } from "./runtime/shards.ts";
import { readKeyring } from "./secrets/keyring.ts";
import { createSealer, type Keyring, type Sealer } from "./secrets/sealer.ts";
import { type CollectionSet, createCollectionSet } from "./store/collection-set.ts";
import { readEtcdCredentials } from "./store/etcd-credentials.ts";
import { createEtcdSpace, type EtcdSpace } from "./store/etcd-space.ts";
import { createEtcdStore } from "./store/etcd-store.ts";
import { createKeptAnswers, type KeptAnswers } from "./store/kept-answers.ts";
import { storeAnswers } from "./store/store-answers.ts";
import type { Store } from "./store/store.ts";
import { createUnitOfWork, type UnitOfWork } from "./store/unit-of-work.ts";
import { createWrittenBytes } from "./store/written-bytes.ts";

/** The base of every group. It knows no resource. */
export interface Kernel {
  readonly controllerId: string;
  readonly installationId: string;
  readonly store: Store;
  /** What this process tells of itself. */
  readonly metrics: ProcessMetrics;
  /** What systems tell of services. */
  readonly serviceFigures: ServiceFigures;
  readonly history: History;
  readonly objects: ObjectStore;
  /** Signs URLs of single objects; undefined where machines have no way to the store. */
  readonly objectUrls: UrlSigner | undefined;
  readonly keyring: Keyring;
  readonly sealer: Sealer;
  readonly authority: InstallationAuthority;
  /** The memory of each kind of object. */
  readonly collections: CollectionSet;
  readonly holds: Holds;
  /** True after a restore: machines and hosts may know more than the store does. */
  readonly storeMayBeBehind: () => boolean;
  /** This controller among the others, and which keys are its own. */
  readonly membership: Membership;
  readonly shards: Shards;
  /** Listeners of the installation's processes, for all controllers. */
  readonly listenerReports: ListenerReports;
  readonly outbox: Outbox;
  readonly keptAnswers: KeptAnswers;
  /** How full etcd is. */
  readonly space: EtcdSpace;
  /** How full the history is. */
  readonly historySpace: HistorySpace;
  readonly cursors: Cursors;
  /** A change of the store, with its events and its audit entry. */
  readonly begin: () => UnitOfWork;
  /** Called once, with the planners of rows for entries of the outbox; until then the outbox moves nothing. */
  readonly planEntriesBy: (planners: readonly EntryPlanner[]) => void;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly random: () => number;
  readonly log: Log;
  /** Aborted when the controller stops. */
  readonly signal: AbortSignal;
  /** Ends all of it; the membership is left by then. */
  close(): Promise<void>;
}

export interface KernelDeps extends Pick<Kernel, "clock" | "newId" | "random" | "log" | "signal"> {
  readonly settings: KernelSettings;
  /** Runs before any object is read. */
  readonly prepare: (parts: Pick<Kernel, "store" | "sealer" | "clock" | "newId">, signal: AbortSignal) => Promise<void>;
}

/** Resolves when the store answers and the authority is there; the memories are still to be opened. */
export async function openKernel(deps: KernelDeps): Promise<Kernel> {
  const { settings, clock, newId, random, log, signal } = deps;
  const { installationId } = settings;
  const controllerId = settings.controllerId || `controller-${randomBytes(6).toString("hex")}`;
  const keyring = await readKeyring(settings.masterKeyFile);
  const sealer: Sealer = { ...createSealer(keyring), mayStore: (form) => membership.allRead(form) };
  const credentials = await readEtcdCredentials(settings);
  const metrics = createProcessMetrics();
  const serviceFigures = createServiceFigures();
  const etcd = { hosts: settings.etcd, ...(credentials && { credentials }) };
  const store = timedStore(createEtcdStore({ ...etcd, log, clock }), metrics);
  const quotaBytes = settings.etcdQuota;
  const space = createEtcdSpace({ ...etcd, quotaBytes, log });
  await storeAnswers(store, log, signal);
  const lifetimes = lifetimesOf(settings.machineCertificateS);
  const authorityReady = createAuthority({ store, sealer, installationId, clock, log, lifetimes });
  await deps.prepare({ store, sealer, clock, newId }, signal);
  const collections = createCollectionSet(store);
  const holds = createHolds({ store, clock, log });
  const history = await openHistory(settings, clock, log);
  const historySpace = createHistorySpace({ database: history.database, quotaBytes: settings.historyQuota, log });
  const membership = createMembership({ store, id: controllerId, leaseS: settings.leaseS, clock, log });
  const listenerReports = createListenerReports(membership, log);
  const shards = createShards({ store, membership, memory: collections, log });
  const inserter = Promise.withResolvers<InsertEntries>();
  const moved = { insert: async (...entries: Parameters<InsertEntries>) => (await inserter.promise)(...entries) };
  const outbox = createOutbox({ store, history: moved, ownership: shards, clock, ids: newId, random, log });
  const keptAnswers = createKeptAnswers({ store, sealer, clock });
  const { writtenBytes } = settings;
  const written = writtenBytes === 0 ? undefined : createWrittenBytes(writtenBytes, clock.monotonicMs);
  const authority = await authorityReady;
  const { caFile } = settings;
  // oxlint-disable-next-line holdfast/own-keys -- the keys are closed: the names of the data planes
  const directories = eachDataPlane((name) => settings[`${name}IdentityDir`]);
  const identities = await keepLocalIdentities({
    authority,
    caFile,
    directories,
    reachedBy: { inference: settings.inferenceNames },
    onWritten: (generation) => inBackground(log, "generation of the authority", membership.tellAuthority(generation)),
    clock,
    log,
  });
  const { objects, signer } = await openObjectStore(settings, {
    trustBundle: () => authority.trustBundle,
    now: clock.now,
  });
  return {
    controllerId,
    installationId,
    store,
    metrics,
    serviceFigures,
    history,
    objects,
    objectUrls: signer,
    keyring,
    sealer,
    authority,
    collections,
    holds,
    storeMayBeBehind: () => holds.list().some(({ kind }) => kind === "restored"),
    membership,
    shards,
    listenerReports,
    outbox,
    keptAnswers,
    space,
    historySpace,
    cursors: createCursors(sealer),
    begin: () => createUnitOfWork(store, { outbox, ...(written && { written }), sealer, clock, ids: newId }),
    planEntriesBy: (planners) => inserter.resolve(createInsertEntries(history, planners)),
    clock,
    newId,
    random,
    log,
    signal,
    async close() {
      for (const part of [identities, holds, authority, collections, keptAnswers, space, historySpace]) part.close();
      await Promise.all([history.close(), store.close()]);
    },
  };
}

import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { join } from "node:path";
import { systemClock } from "@holdfast/common/clock.ts";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import { createLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { createOwnRelease } from "./agent-rollout/own-release.ts";
import { rolloutPaceOf } from "./agent-rollout/rollout-pace.ts";
import { bootstrapAccess } from "./access/bootstrap.ts";
import { createAccess } from "./access/create-access.ts";
import { createCursors } from "./page/cursor.ts";
import { createRefusalAudit } from "./access/refusal-audit.ts";
import { startApi } from "./api.ts";
import { createHolds } from "./clock/holds.ts";
import { createCollections } from "./collections.ts";
import { readControllerConfig } from "./config.ts";
import { createEgress } from "./egress/create-egress.ts";
import { createFleet } from "./fleet/create-fleet.ts";
import { openHistory } from "./history/open-history.ts";
import { createHosts } from "./host/create-hosts.ts";
import { createOffers } from "./host/create-offers.ts";
import { createMachinePlacement } from "./placement/machine-placement.ts";
import { keepLocalIdentities } from "./local-identities.ts";
import { createSampleCollector } from "./metric/sample-collector.ts";
import { createOrphanSweep } from "./machine/orphan-sweep.ts";
import { createWaitingMachines } from "./waiting-machine/waiting-machines.ts";
import { createDirectoryStore } from "./objects/directory-store.ts";
import { directoryOf } from "./objects/object-store.ts";
import { createPayloads } from "./fleet/payload/payloads.ts";
import { createOutbox } from "./outbox/outbox.ts";
import type { OutboxEntry } from "./store/outbox-entry.ts";
import { createAuthorityFollowers } from "./host/authority-followers.ts";
import { createAuthority, lifetimesOf } from "./pki/create-authority.ts";
import { reconciledOf } from "./reconciled.ts";
import { takeSnapshot } from "./recovery/snapshot.ts";
import { createDrainRequests } from "./runtime/drain-requests.ts";
import { createMembership } from "./runtime/membership.ts";
import { createRunner } from "./runtime/runner.ts";
import { createShards } from "./runtime/shards.ts";
import { readKeyring } from "./secrets/keyring.ts";
import { createSealer } from "./secrets/sealer.ts";
import { createServices } from "./services.ts";
import { readEtcdCredentials } from "./store/etcd-credentials.ts";
import { createEtcdStore } from "./store/etcd-store.ts";
import { createKeptAnswers } from "./store/kept-answers.ts";
import { storeAnswers } from "./store/store-answers.ts";
import { createUnitOfWork } from "./store/unit-of-work.ts";
import { createDeliveryDispatcher } from "./webhook/delivery-dispatcher.ts";
import { createRecordVerifier } from "./zone/verify-record.ts";
import { createZoneFeed } from "./zone/zone-feed.ts";
import { createZoneRecords } from "./zone/zone-records.ts";
import { createZoneService } from "./zone/zone-service.ts";

const clock = systemClock;
const newId = uuidv7;
const random = Math.random;
const checkout = join(import.meta.dirname, "..", "..");
/** Payloads of tasks may be so large; what is larger belongs into a pipeline of its own. */
const payloadBytesMax = 64 << 20;

const config = readControllerConfig(process.env);
const log = createLog("controller", config.logLevel);
const controllerId = config.controllerId === "" ? `controller-${randomBytes(6).toString("hex")}` : config.controllerId;
const { installationId } = config;
const stopping = new AbortController();
const agentPace = rolloutPaceOf(config);

// What everything else rests on: the store, the keys, the authority.
const keyring = await readKeyring(config.masterKeyFile);
const sealer = createSealer(keyring);
const credentials = await readEtcdCredentials(config);
const store = createEtcdStore({ hosts: config.etcd, ...(credentials && { credentials }), log, clock });
await storeAnswers(store, log, stopping.signal);
const lifetimes = lifetimesOf(config.machineCertificateS);
const authorityReady = createAuthority({ store, sealer, installationId, clock, log, lifetimes });
if (config.bootstrapFile !== "")
  await bootstrapAccess(config.bootstrapFile, { store, sealer, clock, newId }, stopping.signal);
const collections = createCollections(store);
const { hosts, machines, tasks, records, webhooks } = collections;
const holds = createHolds({ store, clock, log });
const storeMayBeBehind = () => holds.list().some(({ kind }) => kind === "restored");
const history = await openHistory(config, clock, log);
const objects = createDirectoryStore(directoryOf(config.objects));
const payloads = createPayloads(objects, { newId, maxBytes: payloadBytesMax });
const snapshots = { store, history, objects, keyring, installationId, clock, log };

// This controller among the others.
const { agentListen, agentAdvertise } = config;
const [agentsAt, ...alsoListen] = endpointsOf(agentListen);
const membership = createMembership({ store, id: controllerId, leaseS: config.leaseS, clock, log });
const shards = createShards({ store, membership, memory: collections, log });
const moved = {
  insert: (entries: readonly OutboxEntry[], asOf: bigint): Promise<void> => dispatcher.insert(entries, asOf),
};
const outbox = createOutbox({ store, history: moved, ownership: shards, clock, ids: newId, random, log });
const begin = () => createUnitOfWork(store, { outbox, sealer, clock, ids: newId });

// What goes out to where users say.
const egress = createEgress({ config, membership, machines });
const dispatcher = createDeliveryDispatcher({
  webhooks,
  history,
  egress,
  ownership: shards,
  begin,
  sealer,
  clock,
  newId,
  random,
  log,
});

// Machines and who speaks for them.
const [authority] = await Promise.all([authorityReady, collections.ready]);
const ways = await createHosts(
  {
    config,
    environment: process.env,
    store,
    hosts,
    machines,
    begin,
    membership,
    authority,
    sealer,
    storeMayBeBehind,
    clock,
    random,
    log,
  },
  stopping.signal,
);
const { provider, links, overcommit, trust: hostTrust } = ways;
const { caFile, dnsIdentityDir } = config;
const localIdentities = await keepLocalIdentities({ authority, caFile, dnsIdentityDir, clock, log });
const feed = createZoneFeed(store);
const zoneService = createZoneService({ installationId, feed, origin: config.domain, membership, log });
const samples = createSampleCollector({ history, clock, random, log });
const fleet = await createFleet({
  membership,
  installationId,
  store,
  machines,
  tasks,
  authority,
  sealer,
  payloads,
  clock,
  log,
  ...agentsAt,
  alsoListen,
  ...(agentAdvertise === "" ? {} : { advertise: agentAdvertise }),
  services: [zoneService, hostTrust.service],
  samples,
  limits: { sampleIntervalMs: config.sampleIntervalMs },
  storeMayBeBehind,
});
const verifier = createRecordVerifier(zoneService);
const zone = createZoneRecords(records, clock);
const orphans = createOrphanSweep({ provider, machines, store, objectsReady: collections.ready, holds, clock, log });

const held = () => holds.list("deletion").length > 0;
const waiting = createWaitingMachines({ machines, hosts, fleet, held, now: clock.now });
const keptAnswers = createKeptAnswers({ store, sealer, clock });

// What converges the world to the store.
const { catalog, engines } = await createOffers({ config, provider, hosts }, stopping.signal);
const followers = createAuthorityFollowers({ machines, hosts, fleet, authority });
const runner = createRunner({
  reconciled: reconciledOf({
    followers,
    collections,
    begin,
    membership,
    fleet,
    provider,
    placement: createMachinePlacement({ hosts, machines, provider, begin, clock, storeMayBeBehind }),
    links,
    zone,
    orphans,
    authority,
    holds,
    held,
    agentPace,
    waitingLimits: { least: config.waitingMachines, most: config.waitingMachinesMax },
    keptAnswers,
    history,
    sealer,
    askNames: (name, addresses, signal) => verifier.verifyRecord(config.dnsServers, name, addresses, signal),
    snapshots,
    installationId,
    catalog,
    clock,
    newId,
    log,
  }),
  ownership: shards,
  clock,
  log,
  random,
});
runner.start();

// The agents that this controller ships. Nobody waits for them to be made.
const agents = createOwnRelease({
  code: { checkout, made: config.agentCode },
  offer: { rollouts: collections.rollouts, objects, begin, clock, log },
  log,
});
if (agentPace !== undefined) void agents.offer(stopping.signal);

// What users speak to.
const cursors = createCursors(sealer);
const access = createAccess({ store, collections, begin, history, sealer, cursors, clock, log, newId });
const drains = createDrainRequests(store);
const api = await startApi({
  services: createServices({
    access,
    begin,
    collections,
    fleet,
    history,
    outbox,
    egress,
    orphans,
    waiting,
    hostTrust,
    overcommit,
    control: {
      members: membership.members,
      drain: drains.ask,
      snapshot: (signal) => takeSnapshot(snapshots, signal),
      holds,
    },
    maintenanceHeld: () => holds.list("maintenance").length > 0,
    catalog,
    engines,
    defaultAllowedCidrs: config.defaultAllowedCidrs,
    domain: config.domain,
    authority,
    followers,
    offerOwn: agents.offerAgain,
    sealer,
    cursors,
    clock,
    newId,
  }),
  authenticator: access.authenticator,
  refused: createRefusalAudit({ record: outbox.auditSoon, clock, log }),
  keptAnswers,
  reached: collections.reached,
  ready: () => membership.lease()?.live === true,
  controllerId,
  config,
  authority,
  clock,
  log,
}).catch(giveUp);
const draining = drains.serve(controllerId, () => void drain());
log.info("serving", { controller: controllerId, api: config.apiListen, agents: agentListen });

process.once("SIGTERM", () => void stop());
process.once("SIGINT", () => void stop());

/** Gives up keys and agents to the other controllers; the API goes on answering. */
async function drain(): Promise<void> {
  log.info("draining", { controller: controllerId });
  await membership.drain();
}

/** Who cannot serve keeps nobody waiting for the end of its lease. */
async function giveUp(error: unknown): Promise<never> {
  await Promise.race([membership.leave(), delay(2_500)]).catch(() => undefined);
  throw error;
}

/** Machines go on; the lease ends at once, so that nobody waits for it. */
async function stop(): Promise<void> {
  log.info("stopping", { controller: controllerId });
  // Whatever hangs, the process is gone soon: another controller has taken over by then.
  setTimeout(() => process.exit(0), 2_500).unref();
  stopping.abort(new Error("the controller stops"));
  draining.close();
  localIdentities.close();
  await access.close();
  await runner.stop();
  await outbox.stop();
  await dispatcher.stop();
  await egress.close();
  await fleet.close();
  await samples.close();
  shards.close();
  await membership.leave();
  await api.close(500);
  await ways.close();
  for (const part of [holds, zone, feed, authority, collections]) part.close();
  await Promise.all([history.close(), store.close()]);
  process.exit(0);
}

import { join } from "node:path";
import { inBackground } from "@holdfast/common/background.ts";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import type { HostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import { offersPart } from "#catalog/catalog-api.ts";
import type { Use } from "#kernel/assembly.ts";
import { installationPart } from "#kernel/installation.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { definePart } from "#kernel/part.ts";
import type { OutdatedCertificates } from "#kernel/pki/authority-rotation-reconciler.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { createFleet } from "./create-fleet.ts";
import { type FleetSettings, fleetSettings } from "./fleet-settings.ts";
import { createOutdatedCertificates } from "./host/outdated-certificates.ts";
import { createHosts } from "./host/create-hosts.ts";
import { createOffers } from "./host/host-offers.ts";
import { createHostApi } from "./host/host-api.ts";
import { createHostDrainWork } from "./host/host-drain-reconciler.ts";
import { createHostRouteWork } from "./host/host-route-reconciler.ts";
import { createHostWork } from "./host/host-reconciler.ts";
import { hostKind, type HostObject } from "./host/host.ts";
import { createMachineWork } from "./machine/machine-reconciler.ts";
import { machineKind, type MachineObject } from "./machine/machine.ts";
import { createOrphanSweep, type OrphanSweep } from "./machine/orphan-sweep.ts";
import { createObjectUrls, objectGrants, type ObjectGrantSource } from "./object-grants.ts";
import { type OwnerKind, ownerKinds } from "./owner/owner-kind.ts";
import { createOwners, type Owners } from "./owner/owners.ts";
import { createPackedContents, createPayloads, type PackedContents } from "./payload/payloads.ts";
import { createMachinePlacement } from "./placement/machine-placement.ts";
import { createControllerPolicy } from "./network-policy/controller-policy.ts";
import { networkPolicies } from "./network-policy/policy-source.ts";
import { createStorePolicy } from "./network-policy/store-policy.ts";
import { createNetworkPolicyWork } from "./network-policy/network-policy-reconciler.ts";
import { createAgentRolloutApi } from "./rollout/agent-rollout-api.ts";
import { createAgentRolloutWork } from "./rollout/agent-rollout-reconciler.ts";
import { agentRolloutKind } from "./rollout/agent-rollout.ts";
import { createOwnRelease } from "./rollout/release-offer.ts";
import { rolloutRateOf } from "./rollout/rollout-rate.ts";
import { feeds, type RunningFleet } from "./running-fleet.ts";
import { primaryLeaseRulesPart } from "./session/primary-leases.ts";
import { sampleSinkPart } from "./session/sample-sink.ts";
import { taskKind } from "./task/task.ts";
import { expectedDemand, smallestSize } from "./warm-pool/warm-pool-plan.ts";
import { createWarmPool, type WarmPool } from "./warm-pool/warm-pool.ts";
import { createWarmPoolWork } from "./warm-pool/warm-pool-reconciler.ts";
import { dnsRecordKind } from "./zone/dns-record.ts";
import { createDnsServerHealth } from "./zone/dns-server-health.ts";
import { createRecordVerifier, query } from "./zone/verify-record.ts";
import { createZoneFeed } from "./zone/zone-feed.ts";
import { createZoneRecords, type ZoneRecords } from "./zone/zone-records.ts";
import { createZoneService } from "./zone/zone-service.ts";

/** Access of other systems to hosts, machines, DNS names and agents. */
export interface FleetSystem {
  /** Origin of the DNS zone of service names. */
  readonly domain: string;
  /** host:port of the listeners for agents and of DNS servers. URLs of users must not refer to them. */
  readonly listeners: readonly string[];
  /** Network of the machines on the controllers' own host, such as `127.77`; empty without such machines. */
  readonly loopbackBlock: string;
  readonly fleet: RunningFleet;
  /** Packs contents of quick tasks that are too large for a message. */
  readonly contents: PackedContents;
  readonly provider: HostsProvider;
  readonly machines: Collection<MachineObject>;
  readonly owners: Owners;
  readonly hosts: Collection<HostObject>;
  readonly zone: ZoneRecords;
  /** Resolves when every DNS server answers a query for the name with exactly these addresses. */
  readonly awaitNames: (name: string, addresses: readonly string[], signal: AbortSignal) => Promise<void>;
  readonly warmPool: WarmPool;
  readonly orphans: OrphanSweep;
  readonly outdatedCertificates: OutdatedCertificates;
}

export const fleetPart = definePart<FleetSystem>("fleet");

const checkout = join(import.meta.dirname, "..", "..", "..");
/**
 * Maximum size of a task's payload, in bytes. Larger data needs a separate protocol, such as the protocol of backups.
 */
const payloadBytesMax = 64 << 20;
const hourMs = 3_600_000;

/** Hosts, the machines on them, their DNS names and their agents. */
export const fleetSystem = declareSystem({
  name: "fleet",
  settings: fleetSettings,
  audited: { "holdfast.admin.v1.HostService": "host", "holdfast.admin.v1.AgentRolloutService": "agent-rollout" },
  provides: [fleetPart, offersPart],
  open: openFleetSystem,
});

/** Opens the system. Agents are served once the promise resolves. */
async function openFleetSystem(kernel: Kernel, use: Use, settings: FleetSettings): Promise<System> {
  const { environment } = use(installationPart);
  const { collections, controllerRegistry, automationPauses, installationId, log, signal, clock } = kernel;
  const [hosts, machines] = [collections.open(hostKind), collections.open(machineKind)];
  const tasks = collections.open(taskKind);
  const records = collections.open(dnsRecordKind);
  const rollouts = collections.open(agentRolloutKind);
  const rolloutRate = rolloutRateOf(settings);
  await collections.ready();

  const hostAccess = await createHosts({ ...kernel, environment, config: settings, hosts, machines }, signal);
  const { provider, links, overcommit, trust: hostTrust } = hostAccess;
  const feed = createZoneFeed(kernel.store);
  const { listenerReports } = kernel;
  const zoneService = createZoneService({
    installationId,
    feed,
    origin: settings.domain,
    controllerRegistry,
    listenerReports,
    log,
  });
  const zone = createZoneRecords(records, clock);
  const { dnsServers } = settings;
  const dnsHealth = createDnsServerHealth({ servers: dnsServers, monotonicMs: clock.monotonicMs, log });
  const verifier = createRecordVerifier(zoneService, dnsHealth);

  const storePolicy = createStorePolicy(kernel.objectUrls?.endpoint, log);
  const payloads = createPayloads(kernel.objects, { newId: kernel.newId, maxBytes: payloadBytesMax });
  const { objectUrls: signer } = kernel;
  const grants = use(objectGrants);
  requireOwners(grants, use(ownerKinds));
  const owners = createOwners(use(ownerKinds));
  const urlGrants = signer && createObjectUrls({ signer, machines, sources: grants, clock });
  const [agentsAt, ...alsoListen] = endpointsOf(settings.agentListen);
  const fleet = await createFleet({
    ...kernel,
    machines,
    tasks,
    payloads,
    ...agentsAt,
    alsoListen,
    ...(settings.agentAdvertise === "" ? {} : { advertise: settings.agentAdvertise }),
    services: [zoneService, hostTrust.service, ...use(feeds).map(({ service }) => service)],
    samples: use(sampleSinkPart),
    primaryLeaseRules: use(primaryLeaseRulesPart),
    ...(urlGrants && { urlGrants }),
    limits: { sampleIntervalMs: settings.sampleIntervalMs },
  });
  const all = { ...kernel, fleet, provider, links, hosts, machines, owners, rollouts };
  const orphans = createOrphanSweep({ ...all, objectsReady: collections.ready() });
  const isPaused = () => automationPauses.list("deletion").length > 0;
  const warmPool = createWarmPool({ ...all, isPaused, now: clock.now });
  const offers = await createOffers({ config: settings, provider, hosts }, signal);
  const outdatedCertificates = createOutdatedCertificates(all);
  const release = createOwnRelease({
    code: { checkout, bundleDirectory: settings.agentCode },
    offer: all,
    log,
  });
  return {
    name: "fleet",
    provides: [
      offersPart.of(offers),
      fleetPart.of({
        domain: settings.domain,
        listeners: [...settings.agentListen, ...dnsServers],
        loopbackBlock: settings.loopbackBlock,
        fleet,
        contents: createPackedContents(payloads),
        provider,
        machines,
        owners,
        hosts,
        zone,
        awaitNames: (name, addresses, callSignal) => verifier.verifyRecord(dnsServers, name, addresses, callSignal),
        warmPool,
        orphans,
        outdatedCertificates,
      }),
    ],
    rpcs: [
      createHostApi({ ...all, hostTrust, overcommit }),
      createAgentRolloutApi({ ...all, offerOwnRelease: release.offerAgain }),
    ],
    work: [
      createHostWork(all),
      createHostDrainWork(all),
      createMachineWork({
        ...all,
        placement: createMachinePlacement(all),
        session: fleet.session,
        onSession: fleet.subscribe,
        caFingerprint: () => kernel.authority.fingerprint,
        controllers: () => fleet.controllers,
      }),
      createWarmPoolWork({
        ...all,
        isPaused,
        always: expectedDemand(offers.catalog),
        limits: { min: settings.warmPoolMin, max: settings.warmPoolMax },
        size: smallestSize(offers.catalog),
      }),
      ...(rolloutRate === undefined ? [] : [createAgentRolloutWork({ ...all, isPaused, rate: rolloutRate })]),
      createHostRouteWork(all),
      createNetworkPolicyWork({
        edges: provider.edges,
        sources: [...use(networkPolicies), createControllerPolicy(controllerRegistry), storePolicy],
      }),
      createPeriodic("orphans", hourMs, async (runSignal) => void (await orphans.sweep({ dryRun: false }, runSignal))),
    ],
    metrics: [
      { name: "agent_sessions", help: "Agent streams of this controller", read: () => fleet.streamCount },
      {
        name: "primary_lease_requests_total",
        help: "Primary lease requests since the start by outcome; late: granted after half of the previous lease was over",
        read: () => ({ label: "answer", values: fleet.primaryLeaseRequests() }),
      },
      {
        name: "dns_server_up",
        help: "1 while the DNS server responds to this controller, 0 after 5 s without a response",
        read: () => ({ label: "server", values: dnsHealth.values() }),
      },
    ],
    start() {
      inBackground(
        log,
        "health of DNS servers",
        dnsHealth.watch((server) => query(server, settings.domain, signal), signal),
      );
      // Bundling the agent takes seconds, and serving does not wait for it.
      if (rolloutRate !== undefined) inBackground(log, "offer of the agent release", release.offer(signal));
    },
    async close() {
      storePolicy.close();
      await fleet.close();
      await hostAccess.close();
      zone.close();
      feed.close();
    },
  };
}

/** Throws for grants to machines of a kind of owner that no system contributes: no machine would get them. */
function requireOwners(grants: readonly ObjectGrantSource[], owners: readonly OwnerKind[]): void {
  for (const { ownerKind } of grants)
    if (owners.every(({ kind }) => kind !== ownerKind))
      throw new Error(`object grants name "${ownerKind}", which is not a kind of owner of machines`);
}

import { join } from "node:path";
import { inBackground } from "@holdfast/common/background.ts";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import type { HostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { OutdatedCertificates } from "#kernel/pki/authority-rotation-reconciler.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { createFleet } from "./create-fleet.ts";
import { type FleetSettings, fleetSettings } from "./fleet-settings.ts";
import { createOutdatedCertificates } from "./host/outdated-certificates.ts";
import { createHosts } from "./host/create-hosts.ts";
import { createOffers, type Offers } from "./host/create-offers.ts";
import { createHostApi } from "./host/host-api.ts";
import { createHostDrainWork } from "./host/host-drain-reconciler.ts";
import { createHostPathWork } from "./host/host-path-reconciler.ts";
import { createHostWork } from "./host/host-reconciler.ts";
import { hostKind, type HostObject } from "./host/host.ts";
import { createMachineWork } from "./machine/machine-reconciler.ts";
import { machineKind, type MachineObject } from "./machine/machine.ts";
import { createOrphanSweep, type OrphanSweep } from "./machine/orphan-sweep.ts";
import type { ObjectUrlGrants } from "./object-urls.ts";
import { createPackedContents, type PackedContents } from "./payload/packed-contents.ts";
import { createPayloads } from "./payload/payloads.ts";
import { createMachinePlacement } from "./placement/machine-placement.ts";
import { createControllerReach } from "./reach/controller-reach.ts";
import type { ReachOwner } from "./reach/reach-owner.ts";
import { createStoreReach } from "./reach/store-reach.ts";
import { createReachWork } from "./reach/reach-reconciler.ts";
import { createAgentRolloutApi } from "./rollout/agent-rollout-api.ts";
import { createAgentRolloutWork } from "./rollout/agent-rollout-reconciler.ts";
import { agentRolloutKind } from "./rollout/agent-rollout.ts";
import { createOwnRelease } from "./rollout/own-release.ts";
import { rolloutPaceOf } from "./rollout/rollout-pace.ts";
import type { FleetService, RunningFleet } from "./running-fleet.ts";
import type { RightRules } from "./session/rights.ts";
import type { SampleSink } from "./session/sample-sink.ts";
import { taskKind } from "./task/task-object.ts";
import { leastSize, likelyMachines } from "./waiting-machine/likely-machines.ts";
import { createWaitingMachines, type WaitingMachines } from "./waiting-machine/waiting-machines.ts";
import { createWaitingWork } from "./waiting-machine/waiting-reconciler.ts";
import { dnsRecordKind } from "./zone/dns-record.ts";
import { createRecordVerifier } from "./zone/verify-record.ts";
import { createZoneFeed } from "./zone/zone-feed.ts";
import { createZoneRecords, type ZoneRecords } from "./zone/zone-records.ts";
import { createZoneService } from "./zone/zone-service.ts";

/** What other systems need of hosts, machines, names and agents. */
export interface FleetSystem {
  /** Origin of the names of services. */
  readonly domain: string;
  /** host:port of agents and of DNS servers, which no URL of a user may lead to. */
  readonly listeners: readonly string[];
  /** Network of the machines that run on the controllers' own host; empty for none. */
  readonly loopbackBlock: string;
  readonly fleet: RunningFleet;
  /** What is too large for a message to or from an agent. */
  readonly contents: PackedContents;
  readonly provider: HostsProvider;
  readonly machines: Collection<MachineObject>;
  readonly hosts: Collection<HostObject>;
  readonly offers: Offers;
  readonly zone: ZoneRecords;
  /** Resolves when every DNS server answers so. */
  readonly askNames: (name: string, addresses: readonly string[], signal: AbortSignal) => Promise<void>;
  readonly waiting: WaitingMachines;
  readonly orphans: OrphanSweep;
  readonly followers: OutdatedCertificates;
}

interface FleetSystemDeps {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Takes what machines tell of themselves. */
  readonly samples: SampleSink;
  /** Owners of the rules on reachable machines, beside the controllers. */
  readonly reachOwners: readonly ReachOwner[];
  /** Lets machines at objects that are theirs; undefined where the store has no way for them. */
  readonly urlGrants: ObjectUrlGrants | undefined;
  /** What issuers follow. */
  readonly issuerFeed: FleetService;
  /** What processes of the inference proxy follow. */
  readonly inferenceFeed: FleetService;
  /** Says which machine may be the primary of its service. */
  readonly rightRules: RightRules;
}

const checkout = join(import.meta.dirname, "..", "..", "..");
/** Largest payload of a task; larger data need a pipeline of their own. */
const payloadBytesMax = 64 << 20;
const hourMs = 3_600_000;

/** Hosts, the machines on them, their names, and the agents that speak for them. */
export const fleetSystem = declareSystem({
  name: "fleet",
  settings: fleetSettings,
  audited: { "holdfast.admin.v1.HostService": "host", "holdfast.admin.v1.AgentRolloutService": "agent-rollout" },
  open: openFleetSystem,
});

/** Serves agents as soon as it resolves. */
async function openFleetSystem(
  kernel: Kernel,
  deps: FleetSystemDeps,
  settings: FleetSettings,
): Promise<System<{ readonly fleet: FleetSystem }>> {
  const { collections, membership, holds, installationId, log, signal, clock } = kernel;
  const [hosts, machines] = [collections.open(hostKind), collections.open(machineKind)];
  const tasks = collections.open(taskKind);
  const records = collections.open(dnsRecordKind);
  const rollouts = collections.open(agentRolloutKind);
  const pace = rolloutPaceOf(settings);
  await collections.ready();

  const ways = await createHosts({ ...kernel, ...deps, config: settings, hosts, machines }, signal);
  const { provider, links, overcommit, trust: hostTrust } = ways;
  const feed = createZoneFeed(kernel.store);
  const { listenerReports } = kernel;
  const zoneService = createZoneService({
    installationId,
    feed,
    origin: settings.domain,
    membership,
    listenerReports,
    log,
  });
  const zone = createZoneRecords(records, clock);
  const verifier = createRecordVerifier(zoneService);

  const storeReach = createStoreReach(kernel.objectUrls?.endpoint, log);
  const payloads = createPayloads(kernel.objects, { newId: kernel.newId, maxBytes: payloadBytesMax });
  const [agentsAt, ...alsoListen] = endpointsOf(settings.agentListen);
  const fleet = await createFleet({
    ...kernel,
    machines,
    tasks,
    payloads,
    ...agentsAt,
    alsoListen,
    ...(settings.agentAdvertise === "" ? {} : { advertise: settings.agentAdvertise }),
    services: [zoneService, hostTrust.service, deps.issuerFeed, deps.inferenceFeed],
    samples: deps.samples,
    rightRules: deps.rightRules,
    ...(deps.urlGrants && { urlGrants: deps.urlGrants }),
    limits: { sampleIntervalMs: settings.sampleIntervalMs },
  });
  const all = { ...kernel, fleet, provider, links, hosts, machines, rollouts };
  const orphans = createOrphanSweep({ ...all, objectsReady: collections.ready() });
  const held = () => holds.list("deletion").length > 0;
  const waiting = createWaitingMachines({ ...all, held, now: clock.now });
  const offers = await createOffers({ config: settings, provider, hosts }, signal);
  const followers = createOutdatedCertificates(all);
  const release = createOwnRelease({
    code: { checkout, made: settings.agentCode },
    offer: all,
    log,
  });
  return {
    name: "fleet",
    gives: {
      fleet: {
        domain: settings.domain,
        listeners: [...settings.agentListen, ...settings.dnsServers],
        loopbackBlock: settings.loopbackBlock,
        fleet,
        contents: createPackedContents(payloads),
        provider,
        machines,
        hosts,
        offers,
        zone,
        askNames: (name, addresses, asked) => verifier.verifyRecord(settings.dnsServers, name, addresses, asked),
        waiting,
        orphans,
        followers,
      },
    },
    rpcs: [
      createHostApi({ ...all, hostTrust, overcommit }),
      createAgentRolloutApi({ ...all, offerOwn: release.offerAgain }),
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
      createWaitingWork({
        ...all,
        held,
        always: likelyMachines(offers.catalog),
        limits: { least: settings.waitingMachines, most: settings.waitingMachinesMax },
        size: leastSize(offers.catalog),
      }),
      ...(pace === undefined ? [] : [createAgentRolloutWork({ ...all, held, pace })]),
      createHostPathWork(all),
      createReachWork({
        edges: provider.edges,
        owners: [...deps.reachOwners, createControllerReach(membership), storeReach],
      }),
      createPeriodic("orphans", hourMs, async (asked) => void (await orphans.sweep({ dryRun: false }, asked))),
    ],
    metrics: [
      { name: "agent_sessions", help: "Streams of agents that this controller holds", read: () => fleet.held },
      {
        name: "rights_answered",
        help: "Requests for the right to be a primary since the start; late ones came when half of the last right was over",
        read: () => ({ label: "answer", values: fleet.rightsAnswered() }),
      },
    ],
    start() {
      // The start does not wait until the agents that this controller ships are packed.
      if (pace !== undefined) inBackground(log, "offer of the release", release.offer(signal));
    },
    async close() {
      storeReach.close();
      await fleet.close();
      await ways.close();
      zone.close();
      feed.close();
    },
  };
}

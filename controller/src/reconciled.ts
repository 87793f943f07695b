import type { Clock } from "@holdfast/common/clock.ts";
import { engineOf } from "@holdfast/common/engine-catalogue/engine-catalogue.ts";
import type { Log } from "@holdfast/common/log.ts";
import { sweepCredentials } from "./access/credential/credential-upkeep.ts";
import { createOrganizationRemains } from "./access/organization/organization-remains.ts";
import type { RolloutPace } from "./agent-rollout/agent-rollout-plan.ts";
import { createAgentRolloutWork } from "./agent-rollout/agent-rollout-reconciler.ts";
import type { CatalogData } from "./catalog/catalog.ts";
import type { Holds } from "./clock/holds.ts";
import type { Collections } from "./collections.ts";
import type { HostsProvider } from "./compute/hosts/hosts-provider.ts";
import { createEngineChangeWork } from "./engine-change/engine-change-reconciler.ts";
import type { RunningFleet } from "./fleet/running-fleet.ts";
import type { History } from "./history/history.ts";
import type { HostLinks } from "./host/host-links.ts";
import { type HostObject, holdsServices } from "./host/host.ts";
import { createHostDrainWork } from "./host/host-drain-reconciler.ts";
import { whenHostsChange } from "./host/host-changes.ts";
import { imagesInShort } from "./host/host-images.ts";
import { createHostPathWork } from "./host/host-path-reconciler.ts";
import { createHostWork } from "./host/host-reconciler.ts";
import type { MachinePlacement } from "./machine/machine-steps.ts";
import { createImageRegister } from "./maintenance/image-register.ts";
import { createMaintenanceBrake } from "./maintenance/maintenance-brake.ts";
import { createServiceMaintenance } from "./maintenance/settle-maintenance.ts";
import { createMachineWork } from "./machine/machine-reconciler.ts";
import type { OrphanSweep } from "./machine/orphan-sweep.ts";
import type { MachineKind, WaitingLimits } from "./waiting-machine/waiting-plan.ts";
import { createWaitingWork } from "./waiting-machine/waiting-reconciler.ts";
import { createInstanceDelivery } from "./managed-service/instance-delivery.ts";
import { createManagedServiceReconciler } from "./managed-service/managed-service-reconciler.ts";
import { createNameVerification } from "./managed-service/name-verification.ts";
import { createOperationReconciler } from "./operation/operation-reconciler.ts";
import { type AuthorityFollowers, createAuthorityRotation } from "./pki/authority-rotation-reconciler.ts";
import type { InstallationAuthority } from "./pki/create-authority.ts";
import type { SnapshotDeps } from "./recovery/snapshot.ts";
import { createSnapshotReconciler } from "./recovery/snapshot-reconciler.ts";
import { createReachWork } from "./reachability/reach-reconciler.ts";
import { createPeriodic } from "./runtime/periodic.ts";
import type { Reconciled } from "./runtime/runner.ts";
import type { Membership } from "./runtime/membership.ts";
import type { Sealer } from "./secrets/sealer.ts";
import type { KeptAnswers } from "./store/kept-answers.ts";
import type { UnitOfWork } from "./store/unit-of-work.ts";
import type { ZoneRecords } from "./zone/zone-records.ts";

export interface ReconciledDeps {
  readonly collections: Collections;
  readonly begin: () => UnitOfWork;
  readonly membership: Membership;
  readonly fleet: RunningFleet;
  readonly provider: HostsProvider;
  readonly placement: MachinePlacement;
  readonly links: HostLinks;
  readonly zone: ZoneRecords;
  readonly orphans: OrphanSweep;
  readonly authority: InstallationAuthority;
  readonly followers: AuthorityFollowers;
  readonly holds: Holds;
  /** Does anything stand against deleting, or against taking the store's word? */
  readonly held: () => boolean;
  readonly waitingLimits: WaitingLimits;
  /** Undefined where agents stay what they are. */
  readonly agentPace: RolloutPace | undefined;
  readonly keptAnswers: KeptAnswers;
  readonly history: History;
  readonly sealer: Sealer;
  /** Resolves when every DNS server answers so. */
  readonly askNames: (name: string, addresses: readonly string[], signal: AbortSignal) => Promise<void>;
  readonly snapshots: SnapshotDeps;
  readonly installationId: string;
  readonly catalog: CatalogData;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly log: Log;
}

const hourMs = 3_600_000;

/** Every reconciler, with where its keys come from and what wakes them. */
export function reconciledOf(deps: ReconciledDeps): Reconciled[] {
  const { collections, fleet, orphans, keptAnswers, history, holds, clock } = deps;
  const { services, machines, operations } = collections;
  return [
    createHostWork({ ...deps, hosts: collections.hosts, machines }),
    createHostDrainWork({ ...deps, hosts: collections.hosts, machines }),
    managedServices(deps),
    createMachineWork({
      ...deps,
      hosts: collections.hosts,
      machines,
      session: fleet.session,
      onSession: fleet.subscribe,
      caFingerprint: () => deps.authority.fingerprint,
      controllers: () => fleet.controllers,
    }),
    createWaitingWork({
      ...deps,
      machines,
      hosts: collections.hosts,
      always: alwaysWaiting(deps),
      limits: deps.waitingLimits,
      size: leastSize(deps),
    }),
    {
      reconciler: createOperationReconciler({ ...deps, operations, services }),
      keys: () => idsOf(operations),
      subscribe: (onChange) => operations.subscribe(onChange),
      inputs: (id) => operations.get(id)?.modRevision ?? 0n,
    },
    createEngineChangeWork({
      ...deps,
      changes: collections.engineChanges,
      services,
      operations,
      users: collections.databaseUsers,
    }),
    createAuthorityRotation(deps),
    createImageRegister({ ...deps, nodeImages: collections.nodeImages, hosts: collections.hosts, machines }),
    ...(deps.agentPace === undefined
      ? []
      : [createAgentRolloutWork({ ...deps, machines, rollouts: collections.rollouts, pace: deps.agentPace })]),
    createOrganizationRemains({ ...collections, store: deps.snapshots.store }),
    createSnapshotReconciler(deps.snapshots),
    createPeriodic("kept-answers", hourMs, async (signal) => void (await keptAnswers.sweep(signal))),
    createPeriodic("credential-upkeep", hourMs, (signal) =>
      sweepCredentials({ ...collections, store: deps.snapshots.store, clock }, signal),
    ),
    createPeriodic("history-upkeep", hourMs, async () => {
      await history.prepare(clock.now());
      // Samples go once they are rolled up, not before.
      await history.samples.rollUp(clock.now());
      if (holds.list("deletion").length === 0) await history.forget(clock.now());
      await history.deliveries.keepOnly([...idsOf(collections.webhooks)]);
    }),
    createHostPathWork({ ...deps, hosts: collections.hosts }),
    createReachWork({ ...deps, edges: deps.provider.edges, services, machines }),
    createPeriodic("orphans", hourMs, async (signal) => void (await orphans.sweep({ dryRun: false }, signal))),
  ];
}

function managedServices(deps: ReconciledDeps): Reconciled {
  const { collections, fleet } = deps;
  const {
    services,
    machines,
    hosts,
    operations,
    records,
    databaseUsers: users,
    nodeImages,
    brakeRecords,
  } = collections;
  const brake = createMaintenanceBrake({ ...deps, services, operations, brakeRecords, now: deps.clock.now });
  const reconciler = createManagedServiceReconciler({
    ...deps,
    services,
    machines,
    hosts,
    operations,
    records,
    users,
    changes: collections.engineChanges,
    names: createNameVerification(deps.askNames),
    maintenance: createServiceMaintenance({ ...deps, services, machines, hosts, operations, nodeImages, brake }),
    delivery: createInstanceDelivery(deps),
    clockJumped: () => deps.holds.list().some(({ kind }) => kind === "clock"),
  });
  /** The service whose node a machine is. */
  const ownerOf = (machineId: string) => {
    const owner = machines.get(machineId)?.object.spec.owner;
    return owner?.kind === "managed-service" ? owner.id : undefined;
  };
  // A machine that is gone names no owner any more, so whose it was is remembered.
  const lastOwner = new Map<string, string>();
  return {
    reconciler,
    keys: () => idsOf(services),
    subscribe(onChange) {
      const machineChanged = (machineId: string) => {
        const owner = ownerOf(machineId) ?? lastOwner.get(machineId);
        if (owner === undefined) return;
        if (machines.get(machineId) === undefined) lastOwner.delete(machineId);
        else lastOwner.set(machineId, owner);
        onChange(owner);
      };
      for (const { object } of machines.values()) machineChanged(object.metadata.id);
      const watching = [
        services.subscribe(onChange),
        machines.subscribe(machineChanged),
        fleet.subscribe(machineChanged),
        whenHostsChange(hosts, hostInShort, (hostId) => {
          for (const { object } of machines.values())
            if (object.spec.hostId === hostId) machineChanged(object.metadata.id);
        }),
        // What is pending for any service may change with an image.
        nodeImages.subscribe(() => {
          for (const id of idsOf(services)) onChange(id);
        }),
      ];
      return {
        close() {
          for (const watch of watching) watch.close();
        },
      };
    },
    inputs: (id) => inputsOf(id, deps),
    concurrency: 32,
  };
}

/** What a new service is likely to be. */
function alwaysWaiting({ catalog }: ReconciledDeps): Omit<MachineKind, "zone">[] {
  const engine = engineOf("postgresql");
  const storageTier = catalog.storageTiers[0]?.storageTier;
  return engine === undefined || storageTier === undefined
    ? []
    : [{ engine: engine.engine, version: engine.defaultVersion, storageTier }];
}

/** The smallest that is sold: a machine can grow online, and not shrink. */
function leastSize({ catalog: { plans, limits } }: ReconciledDeps) {
  const gib = 1024 ** 3;
  const [plan] = [...plans].sort((a, b) => a.memoryGb - b.memoryGb);
  if (plan === undefined) throw new Error("the catalogue has no plans");
  const { vcpu, memoryGb, rootGb } = plan;
  const diskBytes = limits.storageSizeGbMin * gib;
  return { vcpu, memoryBytes: memoryGb * gib, rootBytes: rootGb * gib, diskBytes };
}

/** All that a reconcile of the service reads from memory, in one text. */
function inputsOf(id: string, { collections, fleet }: ReconciledDeps): string {
  const service = collections.services.get(id);
  const nodes = service?.object.spec.nodes ?? [];
  const parts = nodes.map((node) => {
    const observedAt = fleet.observation(node.id)?.observedAt ?? 0;
    const machine = collections.machines.get(node.id);
    const host = collections.hosts.get(machine?.object.spec.hostId ?? "")?.object;
    const told = host === undefined ? "" : hostInShort(host);
    return `${machine?.modRevision ?? 0} ${told} ${fleet.session(node.id)?.bootId ?? ""} ${observedAt}`;
  });
  const images = [...collections.nodeImages.values()].map(({ modRevision }) => modRevision);
  return `${service?.modRevision ?? 0} ${parts.join(" ")} ${images.join(" ")}`;
}

/** What a service reads of a host that it is on. */
function hostInShort(host: HostObject): string {
  return `${holdsServices(host)} ${imagesInShort(host)}`;
}

function idsOf(collection: { values(): Iterable<{ object: { metadata: { id: string } } }> }): Iterable<string> {
  return Iterator.from(collection.values()).map(({ object }) => object.metadata.id);
}

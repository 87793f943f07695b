import type { StoredNames } from "@holdfast/common/stored-names.ts";
import type { MaintenanceMemory } from "../maintenance/maintenance-memory.ts";
import type { MaintenanceWindow } from "../maintenance/maintenance-window.ts";
import type { ImageCanary } from "./canary/rollback-plan.ts";
import type { Resource } from "#kernel/store/resource.ts";
import type { Subject } from "#operation/operation.ts";
import { type ServiceOrigin, unfinishedOrigin } from "./service-origin.ts";
import type { ManagedServiceState } from "./managed-service-lifecycle.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Pooler } from "./pooler.ts";
import type { Resizing } from "../scaling/service-size.ts";
import type { AutoscaleMemory, StorageAutoscale } from "../scaling/storage-autoscale.ts";

/** A stored managed service. */
export type ManagedServiceObject = Resource<ManagedServiceSpec, ManagedServiceStatus>;

/** Fields of a service whose name in code differs from their stored key. Archives store services too. */
export const managedServiceStoredNames: StoredNames = {
  "spec.nodes.*.failoverCandidate": "vouches",
  "spec.nodes.*.pinned": "keeps",
  "spec.nodes.*.replaces.switchoverRequested": "asked",
  "spec.nodes.*.restarts.delivered": "told",
  "spec.nodes.*.restarts.desired": "wanted",
  "spec.primaryChange": "succession",
  "spec.canary": "trial",
  "spec.canary.writesFenced": "sealed",
  "spec.canary.dataRolledBack": "dataBack",
  "status.recoveryPointStale": "restorableStale",
  "status.warnings.*.announced": "told",
};

/**
 * A managed service is a database engine on one or more nodes, each with a machine of its own.
 *
 * The API writes the desired state (`spec`) and an operation in one transaction. The reconciler
 * (`managed-service-reconciler.ts`) observes machines, agents and DNS names, plans steps by the procedure of the
 * operation (`procedure/`), performs them (`service-steps.ts`), and writes the observed state (`status`), the
 * operation and events (`service-advance.ts`). Agents receive settings as instance specs (`instance-spec.ts`),
 * numbered by `instanceGeneration` and fenced by the term. `member/` has replicas, failover and rolling updates,
 * `canary/` changes of the image. State is output: it is shown to users and never read by a plan.
 */
export const managedServiceKind = defineKind<ManagedServiceObject>("managed-service", {
  indexes: [sourceOfRestore],
  storedNames: managedServiceStoredNames,
  afterRestore,
  quotas: [
    { name: "services", label: "services", limit: 100 },
    {
      name: "storageGb",
      label: "GB of storage",
      limit: 102_400,
      amountOf: ({ spec }) => spec.storageSizeGb * spec.nodes.length,
    },
  ],
});

/** Index: services that are being restored, by the service that the backup is of. */
export function sourceOfRestore({ spec }: ManagedServiceObject): string | undefined {
  return unfinishedOrigin(spec)?.serviceId;
}

/** Desired state of a service. */
export interface ManagedServiceSpec {
  readonly databaseType: string;
  readonly version: string;
  readonly planName: string;
  readonly storageSizeGb: number;
  readonly storageTier: string;
  readonly zone: string;
  readonly allowedCidrs: readonly string[];
  readonly parameters: Readonly<Record<string, string>>;
  readonly ttlHours: number | null;
  readonly expiresAt: number | null;
  readonly deletionProtection: boolean;
  readonly tags: Readonly<Record<string, string>>;
  readonly hostname: string;
  readonly port: number;
  /** Members; `member/member-roles.ts` has their roles. The first one is created together with the service. */
  readonly nodes: readonly NodeSpec[];
  /** Number of the next member. Absent until the first member runs, when the service was created with replicas. */
  readonly nextNodeNumber?: number;
  /**
   * Encrypted: the password that replicas authenticate with. Absent before the first replica, and for engines that
   * authenticate replicas by certificate.
   */
  readonly replicationSecret?: string;
  /** Replicas that a commit waits for; absent: `async`. */
  readonly replicationMode?: ReplicationMode;
  /** Ids of the synchronous standbys: a commit is acknowledged once one of them has it. */
  readonly syncStandbys?: readonly string[];
  /**
   * Generation of the settings by which commits began to wait again, until the primary has reported it; absent: they
   * wait. Before that a commit may be on the primary alone.
   */
  readonly unconfirmedSyncGeneration?: number | undefined;
  /** A switchover or failover in progress; absent: none. */
  readonly primaryChange?: PrimaryChange;
  /** Processes of the platform that are clients of the engine; absent: none. */
  readonly platformAccess?: readonly PlatformAccess[];
  readonly power: "on" | "off";
  /** Time of the last start request that followed a stop, in milliseconds since 1970; absent before the first. */
  readonly poweredOnAt?: number;
  /** Node image of all machines; empty: the image that each machine was created with. */
  readonly image: string;
  /** Kernel that all virtual machines of the service boot from. Absent until one is chosen, and for containers. */
  readonly guestKernel?: string;
  /** Raised by one to start all machines again without another change; absent: 0. */
  readonly machineStarts?: number;
  /** Null: the default window that is derived from the id. */
  readonly maintenanceWindow: MaintenanceWindow | null;
  /** Raised by one for each requested restart. */
  readonly restartCount: number;
  /** Raised by one with each change that an agent must apply. */
  readonly instanceGeneration: number;
  /** A new image or kernel is tried over the data while no client is admitted, whatever the allow-list. */
  readonly canary?: ImageCanary;
  /** Absent: the default of `poolerOf`. */
  readonly pooler?: Pooler;
  /** Absent: the default of `autoscaleOf`. */
  readonly storageAutoscale?: StorageAutoscale;
  /** A change of size in progress, from this size to the one above. */
  readonly resizing?: Resizing;
  /** Time until which writes are not blocked however full the disk is, in milliseconds since 1970; absent: never. */
  readonly writesAllowedUntil?: number;
  /** Backup that the data come from; absent for a service that began empty. */
  readonly origin?: ServiceOrigin;
  /**
   * Deletion only: whether a final backup is taken before the machines are deleted. Absent: no backup, and the disks
   * stay.
   */
  readonly finalBackup?: "wanted" | "skipped";
  /** No client is admitted, whatever the allow-list: the final backup would lack later writes. */
  readonly closed?: true;
}

/** A role of the platform, the database that it may connect to, and the networks (CIDRs) that it connects from. */
export interface PlatformAccess {
  readonly role: string;
  readonly database: string;
  readonly from: readonly string[];
}

/** `sync`: a commit waits for a standby while one follows; `sync_strict`: a commit always waits. */
export type ReplicationMode = "async" | "sync" | "sync_strict";

/** One member of a service. Its machine has the same id. */
export interface NodeSpec {
  readonly id: string;
  readonly hostname: string;
  readonly zone: string;
  /** Absent: 1. Numbers are never reused. */
  readonly number?: number;
  /** It has not followed the primary yet. */
  readonly joining?: true;
  /** A first member of a cluster: it forms that, until it reports that it is a member. */
  readonly forms?: true;
  /** The settings of the others have the address of this new member of a cluster. */
  readonly announced?: true;
  /** It is being removed. */
  readonly leaving?: true;
  /**
   * Generation of the settings from which on the primary's agent counts this replica as a voter for its lease. Only
   * such a replica becomes the primary after a silent one. Absent: no failover candidate.
   */
  readonly failoverCandidate?: number;
  /** Absent: the service's `restartCount`. */
  readonly restarts?: Restarts;
  /** Image, kernel and starts of this node until a rolling update reaches it; absent: the service's. */
  readonly pinned?: Pick<ManagedServiceSpec, "image" | "guestKernel" | "machineStarts"> & {
    /** Version of the engine; absent: the service's. */
    readonly version?: string;
  };
  /** Member that this one replaces because its host is drained or lost; that member is removed afterwards. */
  readonly replaces?: NodeReplacement;
}

/** Restarts of a node's engine, comparable with the service's `restartCount`. */
export interface Restarts {
  /** Restarts that the settings of its agent contain. */
  readonly delivered: number;
  /** Restarts that were requested. Larger than `delivered` while the node waits for its part of a rolling update. */
  readonly desired: number;
}

/** A member that replaces another one. */
export interface NodeReplacement {
  readonly nodeId: string;
  /** The replaced member was the primary, and its switchover to this member was requested. */
  readonly switchoverRequested?: true;
}

/**
 * A change of the primary: a switchover (planned) or a failover (unplanned).
 * `member/primary-replicas/primary-change-plan.ts` decides each step.
 */
export interface PrimaryChange {
  readonly from: string;
  /** Empty until a successor is chosen. */
  readonly to: string;
  /**
   * `fence`: the old primary is silent, and no node is the primary until it is certain that the old one takes no
   * writes. `yield`: the old primary shuts down in order. `promote`: the new primary is named and has not taken a write
   * yet. `recall`: the promotion took too long; no node is the primary until the agent of the new one reports its
   * state.
   */
  readonly step: "fence" | "yield" | "promote" | "recall";
  /** Begin of the change and of its step, in milliseconds since 1970; `stepSince` is absent for the first step. */
  readonly since: number;
  readonly stepSince?: number;
  /** Fence only: an operator chose this node, even if it lacks data. */
  readonly forced?: string;
  /** The data of the new primary have taken writes, so the old one may lack some. */
  readonly hasPromoted?: true;
}

/** Steps of provisioning, in order (spec, provisioning). */
export type ProvisioningStep =
  | "SetupNetwork"
  | "SetupServer"
  | "SetupAgent"
  | "SetupDNS"
  | "ProvisioningRestore"
  | "ProvisioningHealth";

/** Observed state of a service. Times are milliseconds since 1970. */
export interface ManagedServiceStatus {
  readonly state: ManagedServiceState;
  /** Id of the operation in progress. */
  readonly operationId: string | null;
  /** Empty for members that elect their leader. */
  readonly primaryNodeId: string;
  /** Raised each time a primary is named. */
  readonly term: number;
  /** Only of members that elect their leader; absent until the first report. */
  readonly cluster?: ClusterMemory;
  readonly nodes: readonly NodeStatus[];
  readonly health: ServiceHealth;
  /** Absent until the first reconcile of a service that was restored. */
  readonly healthMemory?: HealthMemory;
  /** `service.recovery_point_stale` was emitted and its recovery was not observed yet. */
  readonly recoveryPointStale?: boolean;
  /** Absent until a disk fills up. */
  readonly storage?: StorageMemory;
  /** Absent until the storage grows automatically. */
  readonly autoscale?: AutoscaleMemory;
  /** Problems of members by event type and node, such as `node.unhealthy <node id>`; absent: none. */
  readonly warnings?: Readonly<Record<string, WarningMemory>>;
  /** End of the discarded log that was announced last, by node id. */
  readonly discarded?: Readonly<Record<string, string>>;
  /** Logical replication slots of the primary; absent until it has one. */
  readonly slots?: SlotMemory;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Generation of the settings that every node has applied. */
  readonly observedGeneration: number;
  /** Expiry warnings that were emitted, in hours before the end. */
  readonly expiryWarnings: readonly number[];
  readonly announcedProtectedExpiry: boolean;
  readonly maintenance: MaintenanceMemory;
}

/** Cluster of members that elect their leader. */
export interface ClusterMemory {
  /** All first members have reported that they are members. From then on none forms a cluster. */
  readonly formed: boolean;
  /** Node id of the leader that was reported last; empty before the first election. */
  readonly leader: string;
}

/** Observed state of one node. */
export interface NodeStatus {
  readonly id: string;
  readonly status: "Provisioning" | "Running" | "Stopped" | "Error" | "Unreachable";
  /** Private address, and the address for clients elsewhere; empty until the machine is created. */
  readonly address: string;
  readonly publicAddress: string;
}

/** Logical replication slots, as the primary reported them last. */
export interface SlotMemory {
  readonly nodeId: string;
  readonly slots: readonly LogicalSlot[];
}

/** A logical replication slot of PostgreSQL. */
export interface LogicalSlot {
  readonly name: string;
  readonly database: string;
  readonly plugin: string;
}

/** Begin of a problem in milliseconds since 1970, and whether its event was emitted. */
export interface WarningMemory {
  readonly since: number;
  readonly announced: boolean;
}

/** Fill level of a service's disks as it was announced last. */
export interface StorageMemory {
  /** Percent: 0, 80, 85, 90, 95 or 99. */
  readonly level: number;
  readonly writesBlocked: boolean;
}

/** Status of health that the last event announced, and the current status with its begin. */
export interface HealthMemory {
  readonly announced: ServiceHealth["status"];
  readonly status: ServiceHealth["status"];
  readonly since: number;
}

/** Combined result of the checks of all nodes. */
export interface ServiceHealth {
  readonly status: "healthy" | "degraded" | "unhealthy" | "unknown";
  readonly since: number;
  readonly reason: string;
  readonly checks: readonly HealthCheck[];
}

/** Result of one check of one node. */
export interface HealthCheck {
  readonly name: string;
  readonly nodeId: string;
  readonly status: "healthy" | "degraded" | "unhealthy" | "unknown";
  readonly since: number;
  readonly reason: string;
}

/** Larger than the number of terms or generations that a service can have used since its snapshot. */
const restoreStep = 1_000;

/**
 * Raises the term and the generation above all that agents can have received since the snapshot, so that agents accept
 * the settings. Clients may have been admitted to a canary and have written since, so its data are not rolled back. The
 * primary may rely on other replicas by now, so each becomes a failover candidate anew.
 */
function afterRestore(service: ManagedServiceObject): ManagedServiceObject {
  const { status, spec } = service;
  const term = status?.term;
  return {
    ...service,
    ...(spec !== undefined && { spec: specAfterRestore(spec) }),
    ...(typeof term === "number" && { status: { ...status, term: term + restoreStep } }),
  };
}

function specAfterRestore(spec: ManagedServiceSpec): ManagedServiceSpec {
  const { instanceGeneration: generation, nodes, canary } = spec;
  return {
    ...spec,
    ...(typeof generation === "number" && { instanceGeneration: generation + restoreStep }),
    ...(nodes !== undefined && { nodes: nodes.map(withoutFailoverCandidacy) }),
    ...(canary !== undefined && {
      canary: { operationId: canary.operationId, generation: canary.generation, writesFenced: false },
    }),
  };
}

/** The node without the right to become the primary after a failover. */
export function withoutFailoverCandidacy(node: NodeSpec): NodeSpec {
  const { failoverCandidate: _, ...rest } = node;
  return rest;
}

/** The service as the subject of an operation. */
export function serviceSubject(id: string): Subject {
  return { kind: managedServiceKind.name, id };
}

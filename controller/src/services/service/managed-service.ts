import type { StoredNames } from "@holdfast/common/stored-names.ts";
import type { MaintenanceRecord } from "../maintenance/maintenance-record.ts";
import type { MaintenanceWindow } from "../maintenance/maintenance-window.ts";
import type { ImageCanary } from "./canary/rollback-plan.ts";
import type { Resource } from "#kernel/store/resource.ts";
import type { Subject } from "#operation/operation.ts";
import { type ServiceOrigin, unfinishedOrigin } from "./service-origin.ts";
import type { LayoutMode } from "./layout-mode.ts";
import type { ManagedServiceState } from "./managed-service-lifecycle.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Pooler } from "./pooler.ts";
import type { Resizing } from "../scaling/service-size.ts";
import type { LastGrowth, StorageAutoscale } from "../scaling/storage-autoscale.ts";

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

/** Quota of all storage of an organization: the kinds that use storage have it in common. */
export const storageQuota = {
  name: "storageGb",
  label: "GB of storage",
  limit: 102_400,
  limitMax: 1_000_000_000,
} as const;

/**
 * A managed service is a database engine on one or more nodes; each node has one machine.
 *
 * The API writes the desired state (`spec`) and an operation in one transaction. The reconciler
 * (`reconcile/managed-service-reconciler.ts`) observes machines, agents and DNS names, plans steps by the procedure of
 * the operation (`procedure/`), performs them (`reconcile/service-steps.ts`), and writes the observed state (`status`),
 * the operation and events (`reconcile/service-advance.ts`). Agents receive settings as instance specs
 * (`reconcile/instance-spec.ts`), numbered by `instanceGeneration` and fenced by the term. `member/` has replicas,
 * failover and rolling updates, `canary/` changes of the image. Plans never read the state (`status.state`): it is
 * output, for users.
 */
export const managedServiceKind = defineKind<ManagedServiceObject>("managed-service", {
  indexes: [sourceOfRestore],
  storedNames: managedServiceStoredNames,
  afterRestore,
  quotas: [
    { name: "services", label: "services", limit: 100 },
    { ...storageQuota, amountOf: ({ spec }) => spec.storageSizeGb * spec.nodes.length },
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
   * Encrypted password by which replicas authenticate. Absent before the first replica, and for engines that
   * authenticate replicas by certificate.
   */
  readonly replicationSecret?: string;
  /** Replicas that a commit waits for; absent: `async`. */
  readonly replicationMode?: ReplicationMode;
  /** Ids of the synchronous standbys: a commit is acknowledged once one of them has it. */
  readonly syncStandbys?: readonly string[];
  /**
   * Generation of the settings under which commits wait for standbys again, until the primary has reported it and a
   * standby has everything that was committed until then; absent afterwards. Until then an acknowledged commit may
   * exist only on the primary.
   */
  readonly unconfirmedSyncGeneration?: number | undefined;
  /** A switchover or failover in progress; absent: none. */
  readonly primaryChange?: PrimaryChange;
  /** Processes of the platform that are clients of the engine; absent: none. */
  readonly platformAccess?: readonly PlatformAccess[];
  /** Machines of hosted apps to which the service is attached, as networks (CIDRs); absent: none. */
  readonly attachedClients?: readonly { readonly appId: string; readonly from: readonly string[] }[];
  readonly power: "on" | "off";
  /** Time of the last start request that followed a stop, in milliseconds since 1970; absent before the first. */
  readonly poweredOnAt?: number;
  /** Node image of all machines; empty: the image that each machine was created with. */
  readonly image: string;
  /** Kernel that all virtual machines of the service boot from. Absent until one is chosen, and for containers. */
  readonly guestKernel?: string;
  /** A counter that is raised to restart all machines unchanged; absent: 0. */
  readonly machineStarts?: number;
  /** Null: the default window that is derived from the id. */
  readonly maintenanceWindow: MaintenanceWindow | null;
  /** Raised by one for each requested restart. */
  readonly restartCount: number;
  /** Raised by one with each change that an agent must apply. */
  readonly instanceGeneration: number;
  /** Canary of a new image or kernel, during which no client is admitted, regardless of the allow-list. */
  readonly canary?: ImageCanary;
  /** True if the private listener is enabled; absent: false. */
  readonly privateListener?: boolean;
  /** Layout of the databases of T-SQL clients; absent: `single-db`. */
  readonly layoutMode?: LayoutMode;
  /** Collation of the texts of T-SQL clients; absent: the engine's default. */
  readonly serverCollation?: string;
  /** True if the bucket of a files service has a host name; absent for databases, and services of earlier releases. */
  readonly bucketHost?: true;
  /** Absent: the default of `poolerOf`. */
  readonly pooler?: Pooler;
  /** Absent: the default of `autoscaleOf`. */
  readonly storageAutoscale?: StorageAutoscale;
  /** A change of size in progress, to `planName` and `storageSizeGb`. */
  readonly resizing?: Resizing;
  /** Time until which writes are not blocked, even on a full disk, in milliseconds since 1970; absent: no such time. */
  readonly writesAllowedUntil?: number;
  /** Backup from which the service was restored; absent for a service that was created empty. */
  readonly origin?: ServiceOrigin;
  /**
   * Deletion only: whether a final backup is taken before the machines are deleted. Absent: no backup, and the disks
   * are retained.
   */
  readonly finalBackup?: "wanted" | "skipped";
  /** True before a final backup: no client is admitted, because the backup would lack later writes. */
  readonly closed?: true;
}

/** A database role of the platform, with its database and the networks (CIDRs) from which it connects. */
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
  /** True until the node follows the primary for the first time. */
  readonly joining?: true;
  /** True for a first member of a cluster, which forms the cluster, until it reports that it is a member. */
  readonly forms?: true;
  /** True once the settings of the other members have the address of this new member of a cluster. */
  readonly announced?: true;
  /** True while the node is being removed. */
  readonly leaving?: true;
  /**
   * First generation of settings under which the primary's agent counts this replica as a voter for its lease. Only
   * such a replica can replace a silent primary. Absent: not a failover candidate.
   */
  readonly failoverCandidate?: number;
  /** Absent: the service's `restartCount`. */
  readonly restarts?: Restarts;
  /** Image, kernel and starts of this node until a rolling update reaches it; absent: the service's. */
  readonly pinned?: Pick<ManagedServiceSpec, "image" | "guestKernel" | "machineStarts"> & {
    /** Version of the engine; absent: the service's. */
    readonly version?: string;
  };
  /** The member that this one replaces, because its host is drained or lost. It is removed afterwards. */
  readonly replaces?: NodeReplacement;
}

/** Restarts of a node's engine, comparable with the service's `restartCount`. */
export interface Restarts {
  /** Restarts in the node's instance spec. */
  readonly delivered: number;
  /** Requested restarts: more than `delivered` while the node awaits its restart in a rolling update. */
  readonly desired: number;
}

/** Replacement of a member by another. */
export interface NodeReplacement {
  readonly nodeId: string;
  /** True if the replaced member was the primary, and a switchover to this member was requested. */
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
   * yet. `recall`: the promotion took too long; no node is the primary until the agent of the new
   * primary reports its state.
   */
  readonly step: "fence" | "yield" | "promote" | "recall";
  /** Start of the change and of its step, in milliseconds since 1970; `stepSince` is absent in the first step. */
  readonly since: number;
  readonly stepSince?: number;
  /** Fence only: an operator chose this node, even if it lacks data. */
  readonly forced?: string;
  /** True once the new primary has taken writes, so that the old primary may lack data. */
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
  readonly cluster?: ClusterRecord;
  readonly nodes: readonly NodeStatus[];
  readonly health: ServiceHealth;
  /** Absent until the first reconcile of a service that was restored. */
  readonly healthMemory?: AnnouncedHealth;
  /** True while the recovery point is stale: `service.recovery_point_stale` was emitted and it is not recent again. */
  readonly recoveryPointStale?: boolean;
  /** Absent until a disk fills up. */
  readonly storage?: AnnouncedStorage;
  /** Absent until the storage grows automatically. */
  readonly autoscale?: LastGrowth;
  /** Problems of members by event type and node, such as `node.unhealthy <node id>`; absent: none. */
  readonly warnings?: Readonly<Record<string, WarningRecord>>;
  /** Planned work on members by node id (`member/planned-work.ts`); absent: none. */
  readonly plannedWork?: Readonly<Record<string, PlannedWork>>;
  /** End of the discarded log that was announced last, by node id. */
  readonly discarded?: Readonly<Record<string, string>>;
  /** Logical replication slots of the primary; absent until it has one. */
  readonly slots?: SlotRecord;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Generation of the settings that every node has applied. */
  readonly observedGeneration: number;
  /** Emitted expiry warnings, in hours before the expiry. */
  readonly expiryWarnings: readonly number[];
  readonly announcedProtectedExpiry: boolean;
  readonly maintenance: MaintenanceRecord;
}

/** Cluster of members that elect their leader. */
export interface ClusterRecord {
  /** True once all first members have reported that they are members. Afterwards no member forms a cluster. */
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

/** Logical replication slots by the primary's last report. */
export interface SlotRecord {
  readonly nodeId: string;
  readonly slots: readonly LogicalSlot[];
  /** Names of the slots that the engine invalidated; absent: none. */
  readonly lost?: readonly string[];
}

/** A logical replication slot of PostgreSQL. */
export interface LogicalSlot {
  readonly name: string;
  readonly database: string;
  readonly plugin: string;
}

/** Start of a problem (milliseconds since 1970), and whether its event was emitted. */
export interface WarningRecord {
  readonly since: number;
  readonly announced: boolean;
}

/** Planned work on a member: a restart, another size or image, its replacement, or the drain of its host. */
export interface PlannedWork {
  /** Milliseconds since 1970. */
  readonly since: number;
  /** True once the member was settled, or has failed, in the same operation. */
  readonly hasEnded?: true;
  /** True if the member's host is or was drained. */
  readonly ofDrain?: true;
}

/** Fill level of a service's disks that was last announced. */
export interface AnnouncedStorage {
  /** Percent: 0, 80, 85, 90, 95 or 99. */
  readonly level: number;
  readonly writesBlocked: boolean;
}

/** Health status of the last event, and the current status with its start (milliseconds since 1970). */
export interface AnnouncedHealth {
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

/** Increment after a restore of etcd: more terms or generations than a service can have used since the snapshot. */
const restoreStep = 1_000;

/**
 * The service after a restore of etcd from a snapshot. Term and generation are raised above all values that agents can
 * have received since, so that agents accept the settings. The data of a canary are not rolled back, because clients
 * may have been admitted since. All replicas lose their candidacy, because the primary may count other voters by now.
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

/** The node, not a failover candidate. */
export function withoutFailoverCandidacy(node: NodeSpec): NodeSpec {
  const { failoverCandidate: _, ...rest } = node;
  return rest;
}

/** The service as the subject of an operation. */
export function serviceSubject(id: string): Subject {
  return { kind: managedServiceKind.name, id };
}

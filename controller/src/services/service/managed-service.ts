import type { MaintenanceMemory } from "./maintenance-memory.ts";
import type { MaintenanceWindow } from "./maintenance-window.ts";
import type { ImageTrial } from "./trial/way-back.ts";
import type { Resource } from "#kernel/store/resource.ts";
import type { Subject } from "#operation/operation.ts";
import type { ServiceOrigin } from "./service-origin.ts";
import type { ManagedServiceState } from "./managed-service-lifecycle.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Pooler } from "./pooler.ts";
import type { Resizing } from "../scaling/service-size.ts";
import type { AutoscaleMemory, StorageAutoscale } from "../scaling/storage-autoscale.ts";

export type ManagedServiceObject = Resource<ManagedServiceSpec, ManagedServiceStatus>;

export const managedServiceKind = defineKind<ManagedServiceObject>("managed-service", {
  afterRestore,
  quotas: [
    { name: "services", words: "services", limit: 100 },
    {
      name: "storageGb",
      words: "GB of storage",
      limit: 102_400,
      amountOf: ({ spec }) => spec.storageSizeGb * spec.nodes.length,
    },
  ],
});

/** What a service is to be. */
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
  /** The members, which `member/members.ts` tells the roles of. The first is made with the service. */
  readonly nodes: readonly NodeSpec[];
  /** Number of the next member; absent as long as the first is on its own, and the others wait for it to run. */
  readonly nextNodeNumber?: number;
  /** Sealed: what replicas sign in with; absent where certificates are enough, and before the first replica. */
  readonly replicationSecret?: string;
  /** What a commit waits for; absent: nothing of replicas. */
  readonly replicationMode?: ReplicationMode;
  /** Ids of the replicas of which one must have a commit before it is acknowledged. */
  readonly syncStandbys?: readonly string[];
  /** Another member is becoming the primary; absent while none is. */
  readonly succession?: Succession;
  /** Processes of the platform that are clients of its engine; absent: none. */
  readonly platformAccess?: readonly PlatformAccess[];
  readonly power: "on" | "off";
  /** When it was told to start after its last stop; milliseconds since 1970, absent before the first. */
  readonly poweredOnAt?: number;
  /** Node image of all machines; empty: whichever they were made with. */
  readonly image: string;
  /** Kernel that all its virtual machines boot from; absent as with images, and where machines have none of their own. */
  readonly guestKernel?: string;
  /** Raised by one whenever all its machines are to be started again as they are; absent: 0. */
  readonly machineStarts?: number;
  /** Null: the one that follows from the id. */
  readonly maintenanceWindow: MaintenanceWindow | null;
  /** Raised by one for each restart asked for. */
  readonly restartCount: number;
  /** Raised by one when anything changes that an agent must act on. */
  readonly instanceGeneration: number;
  /** Nobody is admitted, whatever the allow-list: another image or kernel is tried under the data. */
  readonly trial?: ImageTrial;
  /** Absent: as poolerOf says. */
  readonly pooler?: Pooler;
  /** Absent: as autoscaleOf says. */
  readonly storageAutoscale?: StorageAutoscale;
  /** Its size is being changed; the one above is the new one. */
  readonly resizing?: Resizing;
  /** Until then writes are not blocked, however full the disk is; milliseconds since 1970, absent for never. */
  readonly writesAllowedUntil?: number;
  /** Absent for one that began empty. */
  readonly origin?: ServiceOrigin;
  /** Of one that is being deleted: is a backup taken before its machine goes? Absent: it is not, and what is there stays. */
  readonly finalBackup?: "wanted" | "skipped";
  /** No client is admitted, whatever the allow-list: what is acknowledged from now on would not be in the final backup. */
  readonly closed?: true;
}

/** A role of the platform, the database that it may enter, and the networks (CIDRs) that it comes from. */
export interface PlatformAccess {
  readonly role: string;
  readonly database: string;
  readonly from: readonly string[];
}

/** `sync`: a commit waits for a replica while there is one; `sync_strict`: always. */
export type ReplicationMode = "async" | "sync" | "sync_strict";

/** A node's machine has the node's id. */
export interface NodeSpec {
  readonly id: string;
  readonly hostname: string;
  readonly zone: string;
  /** Absent: 1. Never that of another member, before or after. */
  readonly number?: number;
  /** It has not followed the primary yet. */
  readonly joining?: true;
  /** It is being removed. */
  readonly leaving?: true;
  /**
   * It followed the primary of now, who counts it among its vouchers from this generation of settings on; without it, it is
   * not named the primary after one that is silent.
   */
  readonly vouches?: number;
  /** Absent: all that the service counts. */
  readonly restarts?: Restarts;
  /** Its machine keeps these until its turn; absent: it has the service's. */
  readonly keeps?: Pick<ManagedServiceSpec, "image" | "guestKernel" | "machineStarts"> & {
    /** Of its engine; absent: the service's. */
    readonly version?: string;
  };
  /** It takes the place of this member, whose host is drained or given up, and which is removed then. */
  readonly replaces?: Replacing;
}

/** Restarts of a node's engine, counted as the service counts them. */
export interface Restarts {
  /** Its agent is told of so many. */
  readonly told: number;
  /** More than it is told of while it waits for its turn. */
  readonly wanted: number;
}

/** Of a member that takes another's place. */
export interface Replacing {
  readonly nodeId: string;
  /** That one was the primary, and was asked to give way. */
  readonly asked?: true;
}

/** One primary gives way to another. */
export interface Succession {
  readonly from: string;
  /** Empty until one is chosen. */
  readonly to: string;
  /**
   * `fence`: the old one fell silent, and nobody is the primary until it is certain that it takes no writes; `yield`: the old one stops in order, and nobody takes writes; `promote`: the new one is named, and has not taken a write yet;
   * `recall`: it took too long, and nobody is the primary until its agent says what became of it.
   */
  readonly step: "fence" | "yield" | "promote" | "recall";
  /** Milliseconds since 1970, as is when the step began; that one is absent for the first. */
  readonly since: number;
  readonly stepSince?: number;
  /** Of a fence: an operator has this one named, whatever it lacks. */
  readonly forced?: string;
  /** The data of the new one have been a primary's: the old one lacks what it may have written. */
  readonly hasPromoted?: true;
}

/** The spec's steps of provisioning, in order. */
export type ProvisioningStep =
  | "SetupNetwork"
  | "SetupServer"
  | "SetupAgent"
  | "SetupDNS"
  | "ProvisioningRestore"
  | "ProvisioningHealth";

/** What a service is, as last observed. Times are milliseconds since 1970. */
export interface ManagedServiceStatus {
  readonly state: ManagedServiceState;
  /** The operation in progress. */
  readonly operationId: string | null;
  readonly primaryNodeId: string;
  /** Raised each time a primary is named. */
  readonly term: number;
  readonly nodes: readonly NodeStatus[];
  readonly health: ServiceHealth;
  /** Absent in what an older version wrote. */
  readonly healthMemory?: HealthMemory;
  /** It was told that the newest moment that it can be restored to is old, and that is not over. */
  readonly restorableStale?: boolean;
  /** Absent as long as its disks had room. */
  readonly storage?: StorageMemory;
  /** Absent as long as its storage never had to grow by itself. */
  readonly autoscale?: AutoscaleMemory;
  /** What is wrong with members, by what would be told of it; absent while nothing is. */
  readonly warnings?: Readonly<Record<string, WarningMemory>>;
  /** What members lost when they began to follow, as it was announced last, by node. */
  readonly discarded?: Readonly<Record<string, string>>;
  /** Logical slots that its primary has; absent while it never had one. */
  readonly slots?: SlotMemory;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Generation of the instance that every node is held to. */
  readonly observedGeneration: number;
  /** Warnings of expiry that were announced, in hours before. */
  readonly expiryWarnings: readonly number[];
  readonly announcedProtectedExpiry: boolean;
  readonly maintenance: MaintenanceMemory;
}

/** What one node's machine is, as last observed. */
export interface NodeStatus {
  readonly id: string;
  readonly status: "Provisioning" | "Running" | "Stopped" | "Error" | "Unreachable";
  /** Private, and the one for clients elsewhere; empty until the machine is made. */
  readonly address: string;
  readonly publicAddress: string;
}

/** Logical slots of a service, as its primary told them last. */
export interface SlotMemory {
  readonly nodeId: string;
  readonly slots: readonly LogicalSlot[];
}

export interface LogicalSlot {
  readonly name: string;
  readonly database: string;
  readonly plugin: string;
}

/** Since when something is wrong, and was that told? */
export interface WarningMemory {
  readonly since: number;
  readonly told: boolean;
}

/** What was announced of how full a service's disks are. */
export interface StorageMemory {
  /** Percent: 0, 80, 85, 90, 95 or 99. */
  readonly level: number;
  readonly writesBlocked: boolean;
}

/** Which status of health was recorded as an event last, and since when the one of now holds. */
export interface HealthMemory {
  readonly announced: ServiceHealth["status"];
  readonly status: ServiceHealth["status"];
  readonly since: number;
}

/** What the checks of all nodes say together. */
export interface ServiceHealth {
  readonly status: "healthy" | "degraded" | "unhealthy" | "unknown";
  readonly since: number;
  readonly reason: string;
  readonly checks: readonly HealthCheck[];
}

/** What one check of one node says. */
export interface HealthCheck {
  readonly name: string;
  readonly nodeId: string;
  readonly status: "healthy" | "degraded" | "unhealthy" | "unknown";
  readonly since: number;
  readonly reason: string;
}

/** No service had so many failovers or changes since its snapshot: what agents were promised and told since stays below. */
const restoreStep = 1_000;

/**
 * With a term and a generation above all that agents can have seen since, so that they take the settings. Clients may have been
 * admitted since to the image on trial, and have written: its data from before are nothing to go back to. The primary may count on
 * other replicas by now: each becomes a voucher anew.
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
  const { instanceGeneration: generation, nodes, trial } = spec;
  return {
    ...spec,
    ...(typeof generation === "number" && { instanceGeneration: generation + restoreStep }),
    ...(nodes !== undefined && { nodes: nodes.map(withoutVote) }),
    ...(trial !== undefined && {
      trial: { operationId: trial.operationId, generation: trial.generation, sealed: false },
    }),
  };
}

/** Pure: a node that is named after nobody. */
export function withoutVote(node: NodeSpec): NodeSpec {
  const { vouches: _, ...rest } = node;
  return rest;
}

/** The service as what an operation is of. */
export function serviceSubject(id: string): Subject {
  return { kind: managedServiceKind.name, id };
}

/** The node that takes writes. */
export function primaryOf(service: ManagedServiceObject): NodeSpec {
  const primary = service.spec.nodes.find((node) => node.id === service.status.primaryNodeId);
  if (primary === undefined) throw new Error(`service ${service.metadata.id} names a primary that is no node of it`);
  return primary;
}

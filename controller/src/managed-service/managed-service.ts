import { type MaintenanceMemory, noMaintenance } from "./maintenance-memory.ts";
import type { MaintenanceWindow } from "./maintenance-window.ts";
import type { ImageTrial } from "./trial/way-back.ts";
import type { Resource } from "../store/resource.ts";
import type { ManagedServiceState } from "./managed-service-lifecycle.ts";

export type ManagedServiceObject = Resource<ManagedServiceSpec, ManagedServiceStatus>;

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
  /** The members; one until replicas come. The first is made with the service. */
  readonly nodes: readonly NodeSpec[];
  readonly power: "on" | "off";
  /** Node image of all machines; empty: whichever they were made with. */
  readonly image: string;
  /** Kernel that all its virtual machines boot from; absent as with images, and where machines have none of their own. */
  readonly guestKernel?: string;
  /** Null: the one that follows from the id. */
  readonly maintenanceWindow: MaintenanceWindow | null;
  /** Raised by one for each restart asked for. */
  readonly restartCount: number;
  /** Raised by one when anything changes that an agent must act on. */
  readonly instanceGeneration: number;
  /** Nobody is let in, whatever the allow-list: another image or kernel is tried under the data. */
  readonly trial?: ImageTrial;
}

/** A node's machine has the node's id. */
export interface NodeSpec {
  readonly id: string;
  readonly role: "primary" | "replica";
  readonly hostname: string;
  readonly zone: string;
}

/** The spec's steps of provisioning, in order. */
export type ProvisioningStep = "SetupNetwork" | "SetupServer" | "SetupAgent" | "SetupDNS" | "ProvisioningHealth";

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

/** Reads what the store has; what an older version wrote has neither image nor maintenance, and nodes with one address. */
export function parseManagedService(text: string): ManagedServiceObject {
  const { spec, status, ...rest }: ManagedServiceObject = JSON.parse(text);
  return {
    ...rest,
    spec: { ...spec, image: spec.image ?? "", maintenanceWindow: spec.maintenanceWindow ?? null },
    status: {
      ...status,
      nodes: status.nodes.map((node) => ({ ...node, publicAddress: node.publicAddress ?? node.address })),
      maintenance: status.maintenance ?? noMaintenance,
    },
  };
}

/** The node that takes writes. */
export function primaryOf(service: ManagedServiceObject): NodeSpec {
  const primary = service.spec.nodes.find((node) => node.id === service.status.primaryNodeId);
  if (primary === undefined) throw new Error(`service ${service.metadata.id} names a primary that is no node of it`);
  return primary;
}

import type { MaintenanceWindow, PendingUpdateSummary } from "./maintenance-types.ts";
import type { Fault, Operation } from "./operation-types.ts";

/** What the API answers about services, field by field as in its JSON. Times are RFC 3339 texts in UTC. */

/** Where a service is in its life. Treat one that you do not know as "something else". */
export type ServiceStatus = "Pending" | "Provisioning" | "Running" | "Stopped" | "Error" | "Upgrading";
/** Primaries take writes; replicas follow one. */
export type NodeRole = "primary" | "replica";
/** Where one machine of a service is in its life. */
export type NodeStatus = "Provisioning" | "Running" | "Stopped" | "Error" | "Unreachable";
/** What the checks say together; "unknown" while nothing was heard of the machine. */
export type HealthStatus = "healthy" | "degraded" | "unhealthy" | "unknown";

/** One machine of a service. */
export interface ServiceNode {
  readonly id: string;
  readonly role: NodeRole;
  readonly status: NodeStatus;
  readonly hostname: string;
  readonly zone: string;
  /** Resolves to its private address. */
  readonly private_hostname: string;
}

/** What the checks of a service say, together and one by one. */
export interface Health {
  readonly status: HealthStatus;
  readonly since: string | null;
  readonly reason: string | null;
  readonly checks: readonly {
    readonly name: string;
    readonly node_id: string;
    readonly status: HealthStatus;
    readonly since: string | null;
    readonly reason: string | null;
  }[];
}

/** A managed database service, as it is now. */
export interface ManagedService {
  readonly id: string;
  readonly name: string;
  readonly status: ServiceStatus;
  readonly database_type: string;
  readonly version: string;
  readonly plan_name: string;
  readonly storage_size_gb: number;
  readonly storage_tier: string;
  readonly zone: string;
  readonly allowed_cidrs: readonly string[];
  /** Name that clients connect to; it stays when the service is renamed. */
  readonly hostname: string;
  /** The same for clients inside: it resolves to the private address. */
  readonly private_hostname: string;
  readonly port: number;
  readonly nodes: readonly ServiceNode[];
  /** The one in progress; null when there is none. */
  readonly operation: Operation | null;
  readonly health: Health;
  readonly tags: Readonly<Record<string, string>>;
  readonly deletion_protection: boolean;
  /** Hours after its creation at which it is deleted; null to keep it. */
  readonly ttl_hours: number | null;
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  /** Why the status is Error. */
  readonly error: Fault | null;
  /** When updates may begin by themselves. */
  readonly maintenance_window: MaintenanceWindow;
  /** In short; `services.maintenance` has more. */
  readonly pending_updates: readonly PendingUpdateSummary[];
}

/** What a new service is to be; what is left out is the default of the catalogue. */
export interface NewService {
  readonly name: string;
  readonly database_type: string;
  readonly plan_name: string;
  /** Whole GB. */
  readonly storage_size_gb: number;
  readonly version?: string | undefined;
  readonly storage_tier?: string | undefined;
  readonly zone?: string | undefined;
  /** Networks that may connect; an empty list lets nobody in. */
  readonly allowed_cidrs?: readonly string[] | undefined;
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  /** Delete it after so many hours. */
  readonly ttl_hours?: number | undefined;
  readonly deletion_protection?: boolean | undefined;
  readonly tags?: Readonly<Record<string, string>> | undefined;
  readonly maintenance_window?: MaintenanceWindow | undefined;
}

/** Only the keys that are present change; `ttl_hours: null` removes the end, `maintenance_window: null` gives it the default one. */
export interface ServiceChange {
  readonly name?: string | undefined;
  readonly allowed_cidrs?: readonly string[] | undefined;
  readonly ttl_hours?: number | null | undefined;
  readonly deletion_protection?: boolean | undefined;
  readonly tags?: Readonly<Record<string, string>> | undefined;
  readonly maintenance_window?: MaintenanceWindow | null | undefined;
}

/** A service must have all that is given. */
export interface ServiceFilter {
  readonly name?: string | undefined;
  readonly status?: ServiceStatus | undefined;
  readonly database_type?: string | undefined;
  /** "key:value". */
  readonly tag?: string | undefined;
}

/** All that a client needs to connect but the password. */
export interface Connection {
  /** For clients anywhere, like the uri. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  /** Without a password. */
  readonly uri: string;
  /** PEM of the authorities that sign the server's certificate. */
  readonly ca_certificate: string;
  readonly listeners: readonly {
    readonly name: string;
    readonly port: number;
    readonly audience: string;
    readonly tls: string;
    /** Name that this audience finds it by. */
    readonly host: string;
  }[];
  readonly nodes: readonly {
    readonly id: string;
    readonly role: NodeRole;
    readonly hostname: string;
    readonly addresses: readonly string[];
    readonly private_hostname: string;
    readonly private_addresses: readonly string[];
  }[];
  /** For clients on private addresses; the same port and certificate. */
  readonly private_host: string;
  /** Without a password. */
  readonly private_uri: string;
}

/** How far the operation in progress is. */
export interface TaskSummary {
  readonly status: ServiceStatus;
  readonly current_task: string | null;
  readonly progress_pct: number;
  readonly operation_id: string | null;
}

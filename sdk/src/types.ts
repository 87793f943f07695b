import type { MaintenanceWindow, PendingUpdate, PendingUpdateSummary } from "./maintenance-types.ts";

/** What the API answers, field by field as in its JSON. Times are RFC 3339 texts in UTC. */

/** Where a service is in its life. Treat one that you do not know as "something else". */
export type ServiceStatus = "Pending" | "Provisioning" | "Running" | "Stopped" | "Error" | "Upgrading";
/** Primaries take writes; replicas follow one. */
export type NodeRole = "primary" | "replica";
/** Where one machine of a service is in its life. */
export type NodeStatus = "Provisioning" | "Running" | "Stopped" | "Error" | "Unreachable";
/** What the checks say together; "unknown" while nothing was heard of the machine. */
export type HealthStatus = "healthy" | "degraded" | "unhealthy" | "unknown";
/** Least severe first. */
export type LogLevel = "debug" | "info" | "warning" | "error";
/** Has the engine taken a parameter? "rejected" was taken back, because the engine would not run with it. */
export type ParameterStatus = "applied" | "pending_restart" | "rejected";
/** The last three are final. */
export type OperationStatus = "pending" | "running" | "completed" | "failed" | "cancelled";
/** "custom" was made inside the engine, with rights of its own; it cannot be asked for. */
export type UserRole = "admin" | "readwrite" | "readonly" | "custom";

/** What went wrong, for a program and for a person. */
export interface Fault {
  readonly code: string;
  readonly message: string;
}

/** Something that takes time; `waitFor` waits for its end. */
export interface Operation {
  readonly id: string;
  readonly service_id: string;
  /**
   * Of the service: "create", "start", "stop", "restart", "configure", "maintenance" or "delete". Of what is in its engine:
   * "create_user", "reset_password", "delete_user", "create_database" or "delete_database".
   */
  readonly type: string;
  readonly status: OperationStatus;
  /** What is being done; null before it begins. */
  readonly step: string | null;
  readonly progress_pct: number;
  readonly created_at: string;
  readonly started_at: string | null;
  /** When it counts as stuck; progress moves it on. */
  readonly deadline: string | null;
  readonly finished_at: string | null;
  readonly error: Fault | null;
}

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

/** What waits to be done to a service, and when. */
export interface Maintenance {
  readonly service_id: string;
  readonly window: MaintenanceWindow;
  readonly window_is_default: boolean;
  readonly next_window_from: string;
  readonly next_window_until: string;
  /** Node image; null where engines of the host run. */
  readonly image: string | null;
  /** Such as "17.11"; null while it is not known. */
  readonly engine_version: string | null;
  readonly updates: readonly PendingUpdate[];
  /** The one that applies updates now. */
  readonly operation: Operation | null;
  /** Why the platform begins nothing by itself at present. */
  readonly held: string | null;
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

/** A line of an engine's log. */
export interface LogLine {
  readonly time: string;
  readonly node_id: string;
  readonly component: string;
  readonly level: LogLevel;
  readonly message: string;
}

/** A line must have all that is given. */
export interface LogFilter {
  readonly since?: string | undefined;
  /** Lines of this level and above. */
  readonly level?: LogLevel | undefined;
}

/** Lines, oldest first. */
export interface LogPage {
  readonly lines: readonly LogLine[];
  /** Where to go on, also when there is no more yet. */
  readonly next_cursor: string;
  readonly has_more: boolean;
}

/** A user inside the engine of a service. */
export interface DatabaseUser {
  readonly service_id: string;
  readonly username: string;
  readonly role: UserRole;
  /** True when the platform made it and keeps its password. */
  readonly managed: boolean;
  readonly created_at: string | null;
  /** What changes it in the engine, until it is over. */
  readonly operation: Operation | null;
}

/** A user that goes, or is gone. */
export interface DatabaseUserDeletion {
  readonly service_id: string;
  readonly username: string;
  /** Until it is over. */
  readonly operation: Operation | null;
}

/** A user to be made; the platform makes its password. */
export interface NewDatabaseUser {
  readonly username: string;
  readonly role: UserRole;
}

/** A password of a database user, readable. Keep it out of logs. */
export interface DatabasePassword {
  readonly service_id: string;
  readonly username: string;
  readonly password: string;
  /** While the engine has not taken it yet: until then the password before it holds. */
  readonly operation: Operation | null;
}

/** A database inside a service. */
export interface Database {
  readonly service_id: string;
  readonly name: string;
  readonly owner: string;
  readonly size_bytes: number;
  /** What makes or drops it, until it is over. */
  readonly operation: Operation | null;
}

/** A database that goes, or is gone. */
export interface DatabaseDeletion {
  readonly service_id: string;
  readonly name: string;
  /** Until it is over. */
  readonly operation: Operation | null;
}

/** A parameter of an engine. Values are texts, as the engine writes them. */
export interface ParameterState {
  readonly value: string;
  readonly default: string;
  readonly status: ParameterStatus;
  readonly reason: string | null;
}

/** All parameters of a service, by name. */
export interface Configuration {
  readonly parameters: Readonly<Record<string, ParameterState>>;
  /** What brings a change to the engine, until it is over. */
  readonly operation: Operation | null;
}

/** null resets a parameter. */
export type ParameterChange = Readonly<Record<string, string | null>>;

/** What can be created here: engines, plans, storage, zones, prices and limits. */
export interface Catalog {
  readonly engines: readonly {
    readonly database_type: string;
    readonly title: string;
    readonly port: number;
    readonly versions: readonly {
      readonly version: string;
      readonly available: boolean;
      readonly reason: string | null;
    }[];
    readonly default_version: string;
    readonly parameters: readonly {
      readonly name: string;
      readonly type: string;
      readonly description: string;
      readonly default: string | null;
      readonly minimum: string | null;
      readonly maximum: string | null;
      readonly values: readonly string[];
      readonly unit: string | null;
      readonly needs_restart: boolean;
      readonly versions: readonly string[];
    }[];
    readonly extensions: readonly string[];
  }[];
  readonly plans: readonly {
    readonly plan_name: string;
    readonly kind: string;
    readonly vcpu: number;
    readonly memory_gb: number;
    readonly monthly_cost: number;
  }[];
  readonly storage_tiers: readonly {
    readonly storage_tier: string;
    readonly medium: string;
    readonly use: string;
    readonly monthly_cost_per_gb: number;
  }[];
  readonly zones: readonly { readonly zone: string; readonly title: string }[];
  readonly limits: {
    readonly storage_size_gb_min: number;
    readonly storage_size_gb_max: number;
    readonly ttl_hours_min: number;
    readonly ttl_hours_max: number;
    readonly allowed_cidrs_max: number;
    readonly tags_max: number;
  };
  /** Networks that may connect when a request names none. */
  readonly default_allowed_cidrs: readonly string[];
  /** ISO 4217 code of every price. */
  readonly currency: string;
  /** Every metric there is a name for. */
  readonly metrics: readonly {
    readonly name: string;
    readonly unit: string;
    /** Those that have it; empty means all. */
    readonly engines: readonly string[];
    /** "gauge" is what is at the time of a sample, "rate" what came since the sample before, by its time. */
    readonly kind: string;
    readonly meaning: string;
    /** "machine" or "engine"; null for a metric that this version does not collect. */
    readonly source: string | null;
  }[];
}

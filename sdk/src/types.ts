/** What the API answers, field by field as in its JSON. Times are RFC 3339 texts in UTC. */

export type ServiceStatus = "Pending" | "Provisioning" | "Running" | "Stopped" | "Error" | "Upgrading";
export type NodeRole = "primary" | "replica";
export type NodeStatus = "Provisioning" | "Running" | "Stopped" | "Error" | "Unreachable";
export type HealthStatus = "healthy" | "degraded" | "unhealthy" | "unknown";
export type LogLevel = "debug" | "info" | "warning" | "error";
export type ParameterStatus = "applied" | "pending_restart" | "rejected";
export type OperationStatus = "pending" | "running" | "completed" | "failed" | "cancelled";
export type UserRole = "admin" | "readwrite" | "readonly" | "custom";

export interface Fault {
  readonly code: string;
  readonly message: string;
}

export interface Operation {
  readonly id: string;
  readonly service_id: string;
  readonly type: string;
  readonly status: OperationStatus;
  readonly step: string | null;
  readonly progress_pct: number;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly deadline: string | null;
  readonly finished_at: string | null;
  readonly error: Fault | null;
}

export interface ServiceNode {
  readonly id: string;
  readonly role: NodeRole;
  readonly status: NodeStatus;
  readonly hostname: string;
  readonly zone: string;
}

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
  readonly hostname: string;
  readonly port: number;
  readonly nodes: readonly ServiceNode[];
  readonly operation: Operation | null;
  readonly health: Health;
  readonly tags: Readonly<Record<string, string>>;
  readonly deletion_protection: boolean;
  readonly ttl_hours: number | null;
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly error: Fault | null;
}

export interface NewService {
  readonly name: string;
  readonly database_type: string;
  readonly plan_name: string;
  readonly storage_size_gb: number;
  readonly version?: string | undefined;
  readonly storage_tier?: string | undefined;
  readonly zone?: string | undefined;
  readonly allowed_cidrs?: readonly string[] | undefined;
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  readonly ttl_hours?: number | undefined;
  readonly deletion_protection?: boolean | undefined;
  readonly tags?: Readonly<Record<string, string>> | undefined;
}

/** Only the keys that are present change; `ttl_hours: null` removes the end. */
export interface ServiceChange {
  readonly name?: string | undefined;
  readonly allowed_cidrs?: readonly string[] | undefined;
  readonly ttl_hours?: number | null | undefined;
  readonly deletion_protection?: boolean | undefined;
  readonly tags?: Readonly<Record<string, string>> | undefined;
}

export interface ServiceFilter {
  readonly name?: string | undefined;
  readonly status?: ServiceStatus | undefined;
  readonly database_type?: string | undefined;
  /** "key:value". */
  readonly tag?: string | undefined;
}

export interface Connection {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  readonly uri: string;
  readonly ca_certificate: string;
  readonly listeners: readonly {
    readonly name: string;
    readonly port: number;
    readonly audience: string;
    readonly tls: string;
  }[];
  readonly nodes: readonly {
    readonly id: string;
    readonly role: NodeRole;
    readonly hostname: string;
    readonly addresses: readonly string[];
  }[];
}

export interface TaskSummary {
  readonly status: ServiceStatus;
  readonly current_task: string | null;
  readonly progress_pct: number;
  readonly operation_id: string | null;
}

export interface LogLine {
  readonly time: string;
  readonly node_id: string;
  readonly component: string;
  readonly level: LogLevel;
  readonly message: string;
}

export interface LogFilter {
  readonly since?: string | undefined;
  /** Lines of this level and above. */
  readonly level?: LogLevel | undefined;
}

export interface LogPage {
  readonly lines: readonly LogLine[];
  readonly next_cursor: string;
  readonly has_more: boolean;
}

export interface DatabaseUser {
  readonly service_id: string;
  readonly username: string;
  readonly role: UserRole;
  readonly managed: boolean;
  readonly created_at: string | null;
}

export interface NewDatabaseUser {
  readonly username: string;
  readonly role: UserRole;
}

export interface DatabasePassword {
  readonly service_id: string;
  readonly username: string;
  readonly password: string;
}

export interface Database {
  readonly service_id: string;
  readonly name: string;
  readonly owner: string;
  readonly size_bytes: number;
}

export interface ParameterState {
  readonly value: string;
  readonly default: string;
  readonly status: ParameterStatus;
  readonly reason: string | null;
}

export interface Configuration {
  readonly parameters: Readonly<Record<string, ParameterState>>;
  /** What brings a change to the engine, until it is over. */
  readonly operation: Operation | null;
}

/** null resets a parameter. */
export type ParameterChange = Readonly<Record<string, string | null>>;

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
  readonly default_allowed_cidrs: readonly string[];
  readonly currency: string;
}

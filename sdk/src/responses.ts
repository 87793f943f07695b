// Printed from the protos by `npm run generate`. Times are RFC 3339 texts in UTC.

/** Start of the interval, a multiple of the resolution, and the average, minimum and maximum of the metric in it. */
export type MetricPoint = readonly [unixSeconds: number, average: number, minimum: number, maximum: number];

/** "gt": above the threshold; "lt": below it. */
export type AlertCondition = "gt" | "lt";

/** Effect of missing samples: nothing, or an alert after 60 s. */
export type AlertNoData = "ignore" | "fire";

export type AlertSeverity = "info" | "warning" | "critical";

export type AlertState = "ok" | "pending" | "firing" | "no_data" | "paused";

export type BackupKind = "full" | "incremental" | "snapshot";

/** The last two are final. */
export type BackupStatus = "pending" | "running" | "verifying" | "completed" | "failed";

/** Why it was taken. */
export type BackupTrigger = "schedule" | "request" | "first" | "final" | "gap" | "upgrade";

/** "automated" ones are the schedule's, and end with their retention. */
export type BackupType = "automated" | "manual";

export type ChannelType = "email" | "webhook";

export type DestinationType =
  | "apm_platform"
  | "prometheus_remote_write"
  | "otlp"
  | "search_cluster"
  | "log_aggregator"
  | "log_saas"
  | "cloud_monitoring";

export type ExportDataType = "metrics" | "logs" | "both";

/** Combined result of the checks; "unknown" while no agent has reported. */
export type HealthStatus = "healthy" | "degraded" | "unhealthy" | "unknown";

export type InferenceKeyStatus = "active" | "suspended";

/** Least severe first. */
export type LogLevel = "debug" | "info" | "warning" | "error";

/** "exhausted": its attempts are used up, and the next sweep moves it. */
export type MessageState = "ready" | "inflight" | "delayed" | "exhausted";

/** Primaries take writes; replicas follow one. */
export type NodeRole = "primary" | "replica";

/** Where one machine of a service is in its life. */
export type NodeStatus = "Provisioning" | "Running" | "Stopped" | "Error" | "Unreachable";

/** The last three are final. */
export type OperationStatus = "pending" | "running" | "completed" | "failed" | "cancelled";

/** Has the engine taken a parameter? "rejected" was rolled back, because the engine would not run with it. */
export type ParameterStatus = "applied" | "pending_restart" | "rejected";

export type QueueStatus = "Pending" | "Provisioning" | "Active" | "Deprovisioning" | "Failed";

/** "standard" tries three times in 3 s; "extended" goes on five times more, the last 10 hours after the one before. */
export type RetryPolicy = "standard" | "extended";

/** Rights of a member; each role includes those before it. */
export type Role = "viewer" | "developer" | "admin" | "owner";

export type AppDomainStatus = "pending" | "verified";

export type AppStatus = "Running";

export type AppHosting = "external";

export type AttachmentStatus = "healthy" | "unhealthy";

export type AuthStatus = "ProvisioningSchema" | "Active" | "Failed" | "Disabled";

export type AuthKeyStatus = "active" | "retiring" | "retired";

export type AuthSignUp = "open" | "closed";

export type AuthClientType = "public" | "confidential";

export type IssuerDomainChoice = "fallback" | "custom";

export type DeploymentStatus = "Accepted" | "Applying" | "Completed" | "Failed" | "Aborted";

export type MigrationStatus = "Accepted" | "Applying" | "Completed" | "Failed" | "up_to_date";

export type PipelineStatus = "deploying" | "running" | "degraded" | "deleting";

/** What a deployment does with a resource. */
export type PlanAction = "create" | "update" | "noop" | "unmanaged";

/** Status of a project. */
export type ProjectStatus =
  | "Pending"
  | "Provisioning"
  | "Wiring"
  | "Running"
  | "RollingBack"
  | "Failed"
  | "Deleting"
  | "Deleted";

export type StackStatus =
  | "Pending"
  | "Provisioning"
  | "Wiring"
  | "Running"
  | "Upgrading"
  | "RollingBack"
  | "Failed"
  | "Deleting";

export type UpgradeChangeType = "unchanged" | "in_place" | "blocked";

export type SyncState = "streaming" | "catchup" | "starting" | "disconnected";

/** The last two are final. */
export type TaskStatus = "pending" | "running" | "completed" | "failed";

/**
 * "engine_minor" brings another minor version, "image" newer packages, "guest_kernel" another kernel of its virtual
 * machines, "restart" parameters that wait for one, "keeper" machines that are to be started again.
 */
export type UpdateKind = "engine_minor" | "image" | "restart" | "guest_kernel" | "keeper";

/** A day of the week, in UTC. */
export type Weekday = "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday";

/** "custom" was made inside the engine, with rights of its own; it cannot be asked for. */
export type UserRole = "admin" | "readwrite" | "readonly" | "custom";

/** State in a service's life. Treat an unknown one as "something else". */
export type ServiceStatus = "Pending" | "Provisioning" | "Running" | "Stopped" | "Error" | "Upgrading";

/** A rule with its state. */
export interface AlertRule {
  readonly id: string;
  readonly service_id: string;
  readonly name: string;
  /** A metric of the catalog. */
  readonly metric: string;
  readonly condition: AlertCondition;
  readonly threshold: number;
  readonly severity: AlertSeverity;
  /** How long the condition must hold at every sample before the rule fires. */
  readonly duration_minutes: number;
  /** null: the default channel of the organization, if it has one. */
  readonly notification_channel_id: string | null;
  readonly no_data: AlertNoData;
  readonly paused: boolean;
  readonly state: AlertState;
  /** Since when the condition holds while the rule is pending or fires; null otherwise. */
  readonly since: string | null;
  /** The newest value of the worst node; null without one. */
  readonly value: number | null;
  /** The node that decides; null without one. */
  readonly node_id: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** A call that changed something or revealed a secret, or was refused, and its caller. */
export interface AuditLogEntry {
  readonly id: string;
  readonly time: string;
  /** user:NAME, api_key:ID or token:ID. */
  readonly actor: string;
  /** Address the request came from. */
  readonly source: string;
  /** Such as managed-service.create. */
  readonly action: string;
  readonly object_kind: string;
  readonly object_id: string;
  /** ok or refused. */
  readonly result: "ok" | "refused";
  /** Request-Id of the call. */
  readonly request_id: string;
  /**
   * Further detail beside the object: of a statement of the console its text, constants left out and cut; null for
   * none.
   */
  readonly detail: string | null;
}

/** One backup of a service, as it is now. */
export interface Backup {
  readonly id: string;
  readonly service_id: string;
  readonly backup_type: BackupType;
  /** The same as backup_type. */
  readonly type: BackupType;
  readonly status: BackupStatus;
  /** Stored, compressed and sealed; null until it is known. */
  readonly size_bytes: number | null;
  readonly created_at: string;
  /** Why it failed; null otherwise. */
  readonly error_message: string | null;
  readonly encryption_enabled: boolean;
  readonly encryption_algorithm: string;
  readonly kind: BackupKind;
  readonly trigger: BackupTrigger;
  /** Of the data that it was made from; null until it is known. */
  readonly source_bytes: number | null;
  readonly progress_pct: number;
  /** From when it began to run to its end, or to now. */
  readonly duration_seconds: number | null;
  /** Of the engine. */
  readonly version: string;
  readonly database_type: string;
  /** When retention deletes it; null for a backup that is kept until a user deletes it. */
  readonly expires_at: string | null;
  /** Version of the service's backup key that it is sealed under. */
  readonly key_version: number;
  /** When every byte of it was last read and opened by request; null if never. */
  readonly verified_at: string | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /**
   * No later than the data that a restore by id brings back: what was acknowledged before is in them. Null until it is
   * completed.
   */
  readonly restores_to: string | null;
  /** The operation that takes it, or that last verified it. */
  readonly operation_id: string | null;
  /**
   * Of an incremental one: the backup whose data it has the changes since. That one stays for as long as this one does.
   */
  readonly base_backup_id: string | null;
}

/** Key that the data keys of backups are sealed under. */
export interface BackupKey {
  readonly service_id: string;
  /** Version of the key that the next backups are sealed under. */
  readonly key_version: number;
  readonly created_at: string;
  /** When it is replaced by itself. */
  readonly rotates_at: string;
}

/** When the daily backup begins, UTC, and for how long automated ones are kept. */
export interface BackupSettings {
  readonly service_id: string;
  /** When the daily backup begins, UTC. By default it follows from the service's id. */
  readonly hour: number;
  readonly minute: number;
  /** For how long automated backups are kept. */
  readonly retention_days: number;
}

export interface Channel {
  readonly id: string;
  readonly name: string;
  readonly type: ChannelType;
  readonly config: ChannelConfig;
  /** When the address was confirmed; null before, and for webhooks. */
  readonly confirmed_at: string | null;
  /** Why alerts do not reach it, or can be read by others on the way; null when neither is known. */
  readonly warning: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface ChannelConfig {
  /** Of type email. */
  readonly address: string | null;
  /** Of type webhook. */
  readonly url: string | null;
  /** Of type webhook: 64 hex characters in the answer that made it, ******** in all others. */
  readonly secret: string | null;
}

/** One attempt to deliver an event, recorded when it has ended. */
export interface ChannelDelivery {
  readonly id: string;
  readonly channel_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly attempt: number;
  /** null for e-mail, and when the endpoint did not answer. */
  readonly response_status: number | null;
  /** null when it was taken. */
  readonly error_message: string | null;
  /** When it was taken; null when it was not. */
  readonly delivered_at: string | null;
  /** When the attempt began. */
  readonly created_at: string;
  readonly duration_ms: number;
}

export interface ClaimedMessage {
  readonly id: number;
  readonly payload: unknown;
  /** This claim is counted. */
  readonly attempt_count: number;
  readonly enqueued_at: string;
  readonly visible_at: string;
  /** Proof of this claim of this message, for ack, nack and extend. */
  readonly receipt: string;
}

/** All parameters of a service, by name. */
export interface Configuration {
  readonly parameters: Readonly<Record<string, ParameterState>>;
  /** The operation that applies the change, until it is over. */
  readonly operation: Operation | null;
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
  /** PEM of the authority that signed the server's certificate. */
  readonly ca_certificate: string;
  readonly listeners: readonly {
    readonly name: string;
    readonly port: number;
    /** "public", "private" or "peer". */
    readonly audience: string;
    /** "required" or "none". */
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
  /** For reads: it leads to the replicas, or to the primary while none of them is healthy. Without a password. */
  readonly replica_uri: string;
  /**
   * Names every node, for clients that find the primary by themselves; null for engines whose clients cannot. Without a
   * password.
   */
  readonly all_nodes_uri: string | null;
  /** Through the pooler; null while it is not enabled. Without a password. */
  readonly pooled_uri: string | null;
}

/** A person without a password: hand them the setup token. */
export interface CreatedUser {
  /** The user name. */
  readonly id: string;
  /** Shown this once; good for setup_expires_at. */
  readonly setup_token: string;
  readonly setup_expires_at: string;
  readonly created_at: string;
}

/** What became of a snapshot of the data. */
export interface DataSnapshot {
  /** "restored": the data were put back to it. */
  readonly state: "taken" | "none" | "restored";
  /** Why there is none, or why the data were not put back to it though the image was rolled back. */
  readonly reason: string | null;
}

/** A database inside a service. */
export interface Database {
  readonly service_id: string;
  readonly name: string;
  readonly owner: string;
  readonly size_bytes: number;
  /** The operation that creates or drops it, until it is over. */
  readonly operation: Operation | null;
  readonly state: "ready" | "creating" | "closed" | "dropping" | "invalid";
}

/** A database that goes: all that is left to tell while it takes time. */
export interface DatabaseDeletion {
  readonly service_id: string;
  readonly name: string;
  /** Until it is over. */
  readonly operation: Operation | null;
}

/** A password of a database user, readable. Keep it out of logs. */
export interface DatabasePassword {
  readonly service_id: string;
  readonly username: string;
  readonly password: string;
  /** Set while the engine has not taken the password yet. */
  readonly operation: Operation | null;
}

/** A user inside the engine of a service. */
export interface DatabaseUser {
  readonly service_id: string;
  readonly username: string;
  readonly role: UserRole;
  /** True when the platform made it and keeps its password. */
  readonly managed: boolean;
  readonly created_at: string | null;
  /** The operation that changes it in the engine, until it is over. */
  readonly operation: Operation | null;
}

/** A user that goes: all that is left to tell while it takes time. */
export interface DatabaseUserDeletion {
  readonly service_id: string;
  readonly username: string;
  /** Until it is over. */
  readonly operation: Operation | null;
}

export interface DeadMessage {
  readonly id: number;
  readonly payload: unknown;
  readonly attempt_count: number;
  readonly enqueued_at: string;
  readonly died_at: string;
  /** What the last nack said. */
  readonly last_error: string | null;
}

/** The channel of rules without one of their own. */
export interface DefaultChannel {
  /** null when rules without a channel of their own only make events. */
  readonly channel_id: string | null;
}

/** One attempt to deliver an event, recorded when it has ended. */
export interface Delivery {
  readonly id: string;
  readonly webhook_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly attempt: number;
  /** null when the endpoint did not answer. */
  readonly response_status: number | null;
  /** null when the endpoint took it. */
  readonly error_message: string | null;
  /** When the endpoint took it; null when it did not. */
  readonly delivered_at: string | null;
  /** When the attempt began. */
  readonly created_at: string;
  readonly duration_ms: number;
}

/** A test of the backups of a service by restoring them. */
export interface Drill {
  readonly id: string;
  readonly service_id: string;
  /** The last two are final. */
  readonly status: "pending" | "running" | "completed" | "failed";
  readonly trigger: "schedule" | "request";
  /** The newest completed backup of then, which is restored as it is. */
  readonly backup_id: string;
  /** The moment that is restored to beside it; null where there is only the backup. */
  readonly target: string | null;
  /** What was found so far. */
  readonly checks: readonly DrillCheck[];
  /** Why it failed; null otherwise. */
  readonly error: string | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /** Of the operation that it is. */
  readonly operation_id: string;
}

export interface DrillCheck {
  /**
   * "restored": the data are there and the engine runs over them. "structure": tables and indexes are sound.
   * "heartbeat": the newest commit is at most 6 s before the target. "contents": as many keys as the backup has.
   * "databases": names databases that are invalid, as they are in the source; it passes.
   */
  readonly name: string;
  /** The source of this restore: "backup" or "target". */
  readonly of: string;
  readonly passed: boolean;
  readonly detail: string;
}

/** An error, for a person and for a program. */
export interface Fault {
  readonly code: string;
  readonly message: string;
}

/** An alert that fires; notifications to channels have the same fields. */
export interface FiringAlert {
  readonly id: string;
  readonly rule_id: string;
  readonly alert_name: string;
  readonly service_id: string;
  readonly service_name: string;
  readonly node_id: string | null;
  readonly metric: string;
  readonly condition: AlertCondition;
  readonly threshold: number;
  /** The value that fired; null without data. */
  readonly current_value: number | null;
  readonly severity: AlertSeverity;
  /** firing or no_data. */
  readonly state: AlertState;
  /** Since when the condition holds, or there are no data. */
  readonly since: string;
  readonly fired_at: string;
}

/** Results of a service's checks, together and one by one. */
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

/** How the last trial of a service's backups ended. */
export interface LastDrill {
  readonly id: string;
  readonly passed: boolean;
  readonly finished_at: string;
  /** Why it failed; null otherwise. */
  readonly error: string | null;
}

/** A line of an engine's log. */
export interface LogLine {
  readonly time: string;
  readonly node_id: string;
  readonly component: string;
  readonly level: LogLevel;
  readonly message: string;
}

/** Pending updates of a service, and when they are applied. */
export interface Maintenance {
  readonly service_id: string;
  readonly window: MaintenanceWindow;
  /** True for the default window, which follows from the service's id. */
  readonly window_is_default: boolean;
  /** When the window is open next, or since when it is open now. */
  readonly next_window_from: string;
  readonly next_window_until: string;
  /** Node image that the service runs from; null where engines of the host run. */
  readonly image: string | null;
  /** Full version of the engine, such as "17.11"; null while it is not known. */
  readonly engine_version: string | null;
  readonly updates: readonly PendingUpdate[];
  /** The operation that applies updates now. */
  readonly operation: Operation | null;
  /** Why the platform begins nothing by itself at present; updates can still be applied by request. */
  readonly held: string | null;
  /** Kernel that the service's virtual machines boot from; null where machines have none of their own. */
  readonly guest_kernel: string | null;
}

/** Two hours of each week in which updates may begin by themselves. */
export interface MaintenanceWindow {
  readonly day: Weekday;
  /** When it opens, UTC; omitted: 0, which is midnight. */
  readonly hour: number;
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
  /** Name that clients connect to; fixed at creation. It resolves to the public address. */
  readonly hostname: string;
  readonly port: number;
  readonly nodes: readonly ServiceNode[];
  /** The operation in progress. */
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
  /** Pending updates in short; the service's maintenance has the details. */
  readonly pending_updates: readonly PendingUpdateSummary[];
  /**
   * The same for clients inside: it resolves to the private address, which is the public one where there is no other.
   */
  readonly private_hostname: string;
  /** Null where the engine has no backups. */
  readonly backups: ServiceBackups | null;
  /** Only of a service that is deleted and can come back: when it was deleted, and until when it can be undeleted. */
  readonly deleted_at: string | null;
  readonly undelete_until: string | null;
  /** The node that takes writes. */
  readonly primary_node_id: string;
  /** Counts the primaries that the service has had. */
  readonly term: number;
  /** Null while the service has one node. */
  readonly replication: Replication | null;
  /** Where its data came from; null of a service that began empty. */
  readonly restored_from: RestoredFrom | null;
  /** Null where the engine has no pooler. */
  readonly pooler: {
    readonly enabled: boolean;
    /**
     * "transaction": a client has a session of the engine for as long as a transaction lasts. "session": for as long as
     * it is connected.
     */
    readonly mode: string;
  } | null;
  readonly storage_autoscale: {
    readonly enabled: boolean;
    /** Limit of growth; null until one is set. */
    readonly max_gb: number | null;
  };
  /** The project, stack or pipeline that it belongs to: that one alone deletes, stops, resizes and renames it. */
  readonly managed_by: ManagedBy | null;
}

/** A caller, its organization and its rights. */
export interface Me {
  /** user, api_key or token. */
  readonly kind: "user" | "api_key" | "token";
  readonly id: string;
  readonly name: string;
  /** The organization that this call acts in; null for a person of several who has named none. */
  readonly organization_id: string | null;
  /** Null for keys and tokens. */
  readonly role: Role | null;
  readonly scopes: readonly string[];
  readonly expires_at: string | null;
  /** At most 200 of them; ListOrganizations has all. */
  readonly organizations: readonly {
    readonly id: string;
    readonly name: string;
    readonly role: Role | null;
  }[];
}

/** A person in an organization. */
export interface Member {
  /** The person's user name. */
  readonly user_id: string;
  readonly role: Role;
  readonly created_at: string;
}

/** Prometheus text format 0.0.4. */
export interface MetricExposition {
  readonly text: string;
}

/** What one node was like at one time. */
export interface MetricSample {
  readonly time: string;
  readonly node_id: string;
  readonly role: NodeRole;
  /** By name, of the metrics that were asked for; one without a value then is left out. */
  readonly values: Readonly<Record<string, number>>;
}

export interface MetricSeries {
  readonly metric: string;
  readonly unit: string;
  readonly node_id: string;
  readonly role: NodeRole;
  /**
   * [unix_seconds, average, minimum, maximum] of each time that has samples, oldest first. unix_seconds is where the
   * time begins, a multiple of the resolution. The last one may still be in progress.
   */
  readonly points: readonly MetricPoint[];
}

export interface Metrics {
  /** As it was asked for; null with start. */
  readonly period: string | null;
  readonly resolution: "1m" | "5m" | "1h";
  /** One for each metric and node that has it, in the order asked. */
  readonly series: readonly MetricSeries[];
  /** Metrics that were asked for and that a node cannot tell. */
  readonly absent: readonly {
    readonly metric: string;
    readonly node_id: string;
    /** Why there are no samples of it. */
    readonly reason: string;
  }[];
}

/** Something that takes time. */
export interface Operation {
  readonly id: string;
  readonly service_id: string;
  /**
   * Of the service: "create", "start", "stop", "restart", "configure", "maintenance", "upgrade", "add_node",
   * "remove_node", "move_node", "failover", "resize", "expand" or "delete". Inside its engine: "create_user",
   * "reset_password", "delete_user", "create_database" or "delete_database". Of its backups: "backup", "verify_backup"
   * or "drill".
   */
  readonly type: string;
  readonly status: OperationStatus;
  /** The present step, such as "SetupServer"; "WaitForHost <name>" while the machine's host does not answer. */
  readonly step: string | null;
  readonly progress_pct: number;
  readonly created_at: string;
  readonly started_at: string | null;
  /**
   * When it counts as stuck; absent while it waits for a host to answer, and for up to an hour after the platform's
   * clock jumped.
   */
  readonly deadline: string | null;
  readonly finished_at: string | null;
  readonly error: Fault | null;
  /** Of maintenance that changes the image: the outcome of the snapshot of the data before the change. */
  readonly snapshot: DataSnapshot | null;
  /** What it found and left as it is, such as databases that are invalid; sentences for a person. */
  readonly warnings: readonly string[];
}

/** The owner of services, keys and memberships. */
export interface Organization {
  readonly id: string;
  readonly name: string;
  /** How many of each it may have, and has. Operators set the quota. */
  readonly quota: OrganizationFigures;
  readonly usage: OrganizationFigures;
  readonly created_at: string;
  readonly updated_at: string;
}

/** How many of each an organization may have, or has. */
export interface OrganizationFigures {
  readonly services: number;
  readonly members: number;
  readonly api_keys: number;
  readonly tokens: number;
  readonly webhooks: number;
  /** Of all services together. */
  readonly storage_gb: number;
  /** People that the organization made. */
  readonly users: number;
  readonly projects: number;
  readonly stacks: number;
  readonly pipelines: number;
}

/** A parameter of an engine. Values are texts, as the engine writes them. */
export interface ParameterState {
  readonly value: string;
  readonly default: string;
  readonly status: ParameterStatus;
  readonly reason: string | null;
}

/** A pending update in short. */
export interface PendingUpdateSummary {
  readonly id: string;
  readonly kind: UpdateKind;
  /** It waits for the window no longer than its notice. */
  readonly urgent: boolean;
  /** When it begins by itself; null when only a request applies it. */
  readonly apply_at: string | null;
}

/** A queue inside a PostgreSQL service. */
export interface Queue {
  readonly id: string;
  readonly service_id: string;
  readonly name: string;
  readonly database_name: string;
  /** How long a claimed message is hidden, unless its claim says otherwise. */
  readonly visibility_timeout_seconds: number;
  /** Claims of one message, after which it is dead. */
  readonly max_attempts: number;
  /** Dead messages are kept for 14 days; false: they are deleted. */
  readonly dlq_enabled: boolean;
  /** Only an Active queue takes and gives messages. */
  readonly status: QueueStatus;
  readonly created_at: string;
  readonly updated_at: string;
  /** While it is Failed. */
  readonly error_message: string | null;
}

export interface QueueMessage {
  readonly id: number;
  readonly payload: unknown;
  readonly state: MessageState;
  readonly attempt_count: number;
  readonly max_attempts: number;
  readonly enqueued_at: string;
  readonly visible_at: string;
  /** What the last nack said. */
  readonly last_error: string | null;
}

/** The id of a result that comes later, for 24 hours. */
export interface QueueTask {
  readonly task_id: string;
}

/** What a statement of the query console answered. */
export interface QueryResult {
  readonly columns: readonly string[];
  /** A list for each row: numbers that fit a JSON number, truth values and null as such, all else as text. */
  readonly rows: readonly (readonly (string | number | boolean | null)[])[];
  readonly row_count: number;
  readonly execution_ms: number;
  /** True when there are more rows than the 1,000, or 8 MiB, that are answered. */
  readonly truncated: boolean;
}

/** What the engine counted of one query of one database. */
export interface QueryStatistic {
  /** The text with placeholders instead of literals; a remark instead of it where it cannot be shown without them. */
  readonly query: string;
  readonly calls: number;
  /** Milliseconds, of all executions and of one on average. */
  readonly total_time: number;
  readonly mean_time: number;
  /** Returned or affected by all executions. */
  readonly rows: number;
  /** 0 to 1: share of the needed blocks that was in memory. Null when none was needed. */
  readonly cache_hit_ratio: number | null;
  /** The engine's id of the query, the same for all executions. */
  readonly query_id: string;
  readonly database: string;
}

export interface QueryStatistics {
  readonly queries: readonly QueryStatistic[];
  /** How many different queries the engine has counted. */
  readonly total_count: number;
  readonly collected_at: string;
  readonly database_type: string;
  /** When counting began: the last reset, or the last failover. */
  readonly since: string;
}

/** Statistics that are answered later: null members until it is completed. */
export interface QueryStatisticsTask {
  readonly task_id: string;
  readonly status: TaskStatus;
  /** Of a failed one. */
  readonly error: Fault | null;
  readonly queries: readonly QueryStatistic[];
  /** Null until it is completed, as all that follows. */
  readonly total_count: number | null;
  readonly collected_at: string | null;
  readonly database_type: string | null;
  readonly since: string | null;
}

/** How the nodes of a service hold together. */
export interface Replication {
  /** Replication that a commit waits for: "async", "sync" or "sync_strict". */
  readonly mode: string;
  /** Every replica is connected to the primary, and commits wait for one where they should. */
  readonly healthy: boolean;
  /**
   * Names of the replicas that can become primary; in "sync" and "sync_strict" one of these replicas has each commit.
   */
  readonly standby_names: readonly string[];
}

/** How far a node is behind its primary, as both said just now. */
export interface ReplicationStatus {
  readonly node_id: string;
  readonly role: NodeRole;
  /** Log of the primary that the node has not replayed; null when neither end tells. */
  readonly lag_bytes: number | null;
  /** Age of the oldest commit that it lacks; 0 when it lacks none, null when neither end tells. */
  readonly lag_seconds: number | null;
  readonly connected: boolean;
  /** Null for the primary. */
  readonly sync_state: SyncState | null;
  /** Position in the log, of a replica as replayed, of the primary as written, in the engine's notation. */
  readonly position: string | null;
  readonly timeline: number | null;
  /** Since when it is connected, or is not. */
  readonly since: string | null;
  readonly measured_at: string;
}

/** What the data of a service were made from. */
export interface RestoredFrom {
  /** "restore", "fork" or "undelete". */
  readonly kind: string;
  /** The service that the backup is of. */
  readonly service_id: string;
  /** The backup that was restored, or that the log was followed from. */
  readonly backup_id: string;
  /** The moment up to which the log was followed; null when the data are those of the backup. */
  readonly restore_point: string | null;
}

/** The new signing secret. */
export interface RotatedSecret {
  /** 64 hex characters; not shown again. */
  readonly secret: string;
  /** null when the old secret ended at once. */
  readonly previous_valid_until: string | null;
}

export interface RunningQueries {
  /** 200 at most. */
  readonly queries: readonly RunningQuery[];
  /** True when there are more. */
  readonly truncated: boolean;
}

/** A session that runs a query, or holds a transaction open. */
export interface RunningQuery {
  /** Names the session, and no later session with the same pid. */
  readonly query_run_id: string;
  readonly pid: number;
  readonly username: string;
  readonly database: string;
  /** As the engine says it, such as "active" or "idle in transaction". */
  readonly state: string;
  /** The event that it waits for, such as "Lock: relation"; null while it works. */
  readonly wait: string | null;
  /** Sessions of this list or of the platform's that it waits for. */
  readonly blocked_by: readonly number[];
  /** Since its query began, in seconds. */
  readonly age_seconds: number;
  /** Since its transaction began, in seconds; null outside of one. */
  readonly transaction_seconds: number | null;
  /** Address of the client. */
  readonly client: string | null;
  /** As it was sent, up to 10,000 characters; of an idle session the last one. */
  readonly query: string;
}

/** Backups of a service and its restore window, in short. */
export interface ServiceBackups {
  /** Null while nothing can be. */
  readonly restorable: TimeRange | null;
  /** Times within it that cannot be restored to, the newest 20. */
  readonly gaps: readonly TimeRange[];
  readonly last_completed_at: string | null;
  /** When the next one begins by itself; null while none will. */
  readonly next_at: string | null;
  /** Version of the key that the next one is sealed under; null before the first. */
  readonly key_version: number | null;
  /** The last drill that has ended; null before the first. */
  readonly last_drill: LastDrill | null;
}

export interface MetricsExport {
  readonly id: string;
  /** null for all services of the organization, now and later. */
  readonly service_id: string | null;
  readonly name: string;
  readonly destination_type: DestinationType;
  readonly data_type: ExportDataType;
  readonly export_interval_seconds: number;
  /** As docs/exports.md has it for each type; secrets show as ********. */
  readonly configuration: Readonly<Record<string, unknown>>;
  readonly is_enabled: boolean;
  /** Ticks that failed since the last that did not. */
  readonly consecutive_failures: number;
  /** null while the last tick did not fail. */
  readonly last_export_error: string | null;
  /** When the destination took something last. */
  readonly last_export_at: string | null;
  /** When something was sent last, taken or not. */
  readonly last_attempt_at: string | null;
  /** Age of the oldest thing that may wait to be sent; 0 when the last tick left nothing. */
  readonly backlog_seconds: number;
  readonly exported: {
    readonly samples: number;
    readonly log_entries: number;
  };
  readonly dropped: {
    /** Older than the destination takes. */
    readonly too_old: number;
    /** Refused by the destination, each alone. */
    readonly refused: number;
    /** Samples that left the history before they were sent. */
    readonly gone: number;
    /** Segments of engine logs that were rotated away before they were sent. */
    readonly gone_log_segments: number;
  };
  /** Why the platform disabled it; null when it did not. */
  readonly disabled_reason: string | null;
  /** What is not as was asked for, such as a half of data_type that the destination does not take. */
  readonly warnings: readonly string[];
  readonly created_at: string;
  readonly updated_at: string;
}

export interface MetricsExportPage {
  readonly integrations: readonly MetricsExport[];
  /** Of all that the filter lets through. */
  readonly total: number;
  readonly limit: number;
  readonly offset: number;
}

export interface MetricsExportTest {
  readonly success: boolean;
  /** null on success. */
  readonly error: string | null;
}

/** A key with its secret, shown this once. */
export interface CreatedInferenceKey {
  readonly id: string;
  readonly secret: string;
  readonly name: string;
  readonly status: InferenceKeyStatus;
  readonly monthly_token_limit: number | null;
  readonly rate_limit_rpm: number | null;
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly org_id: string;
}

export interface InferenceCapabilities {
  readonly chat: boolean;
  readonly embeddings: boolean;
}

/** The month (UTC) so far. */
export interface InferenceCircuit {
  /** Calls are refused until the limit is raised with reset_circuit, or the month ends. */
  readonly open: boolean;
  readonly opened_at: string | null;
  readonly spent_cents: number;
  /** Promised to processes of the proxy for calls under way and to come. */
  readonly reserved_cents: number;
  readonly period_start: string;
  /** What processes of the proxy that were lost with their directories may have spent besides, at most. */
  readonly unaccounted_cents: number;
}

/** What applications call the proxy with; the secret is not shown. */
export interface InferenceKey {
  readonly id: string;
  readonly name: string;
  readonly status: InferenceKeyStatus;
  /** Tokens in a month (UTC), in and out; null for no limit. */
  readonly monthly_token_limit: number | null;
  /** Requests in any 60 s; null for no limit. */
  readonly rate_limit_rpm: number | null;
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** A provider of models, as the organization has configured it. */
export interface InferenceProvider {
  /** Prefix of its models, such as "provider_a". */
  readonly provider: string;
  readonly enabled: boolean;
  /** Where it is called; null for the catalog's own URL. */
  readonly base_url: string | null;
  /** The operator attests that base_url is served from the EU. */
  readonly eu_endpoint: boolean;
  readonly has_api_key: boolean;
  readonly capabilities: InferenceCapabilities;
  /** Calls to it stay in the EU, so that eu_only lets them pass. */
  readonly eu_route: boolean;
  /** PEM of authorities that its certificate is verified by instead of the public ones. */
  readonly ca_certificate: string | null;
  readonly updated_at: string;
}

/** Limits and rules of an organization's inference. */
export interface InferenceSettings {
  readonly monthly_cost_limit_cents: number;
  readonly eu_only: boolean;
  /** inference.budget_warning happens at this share of the limit. */
  readonly alert_pct: number;
  readonly circuit: InferenceCircuit;
}

export interface InferenceUsage {
  readonly period: InferenceUsagePeriod;
  /** EUR. */
  readonly currency: string;
  readonly items: readonly InferenceUsageItem[];
  readonly total: InferenceUsageTotal;
}

export interface InferenceUsageItem {
  /** With the provider's prefix; null when grouped by key. */
  readonly model: string | null;
  /** null when grouped by model. */
  readonly key_id: string | null;
  /** Of the key; null when grouped by model, and when it was revoked. */
  readonly name: string | null;
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cost_cents: number;
  /** Requests whose provider told no usable usage; their tokens are our own count. */
  readonly estimated_requests: number;
}

export interface InferenceUsagePeriod {
  readonly from: string;
  readonly to: string;
}

export interface InferenceUsageTotal {
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cost_cents: number;
  readonly estimated_requests: number;
}

/** An id and a secret that programs sign in with; the secret is not shown. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expires_at: string | null;
  readonly created_at: string;
  /** The maker, as the audit log names it. */
  readonly created_by: string | null;
  /** Up to a minute old. */
  readonly last_used_at: string | null;
  /** Address of the caller. */
  readonly last_used_from: string | null;
  /** Until when the secret before the last rotation works. */
  readonly previous_secret_expires_at: string | null;
}

/** The offer of this installation: engines, plans, storage, zones, prices and limits. */
export interface Catalog {
  readonly engines: readonly {
    readonly database_type: string;
    readonly title: string;
    readonly port: number;
    readonly versions: readonly {
      readonly version: string;
      /** False when this installation cannot run it; the reason is in `reason`. */
      readonly available: boolean;
      readonly reason: string | null;
    }[];
    readonly default_version: string;
    readonly parameters: readonly {
      readonly name: string;
      /** "integer", "real", "boolean", "enum", "text", "bytes" or "duration". */
      readonly type: string;
      readonly description: string;
      /** Null when the plan decides. */
      readonly default: string | null;
      readonly minimum: string | null;
      readonly maximum: string | null;
      readonly values: readonly string[];
      readonly unit: string | null;
      readonly needs_restart: boolean;
      /** Versions that have it; empty means all. */
      readonly versions: readonly string[];
    }[];
    /** Extensions that the default user may create; empty where the engine has none. */
    readonly extensions: readonly string[];
    /** Null where the engine has no backups. */
    readonly backups: {
      /** Kind of a base backup: "full" or "snapshot". */
      readonly kind: string;
      /** Possible moments of a restore: "any_second" of the window, or "snapshots", the moments of its backups. */
      readonly restore_points: string;
      /** A service can be forked. */
      readonly fork: boolean;
      /** A daily backup can hold only the changes since the one before. */
      readonly increments: boolean;
    } | null;
    /** Null where the engine has no pooler. */
    readonly pooler: {
      readonly port: number;
      /** "transaction" and "session"; the first is the default. */
      readonly modes: readonly string[];
    } | null;
  }[];
  readonly plans: readonly {
    readonly plan_name: string;
    readonly vcpu: number;
    readonly memory_gb: number;
    /** For a month, in the currency of the catalog. */
    readonly monthly_cost: number;
    /** Kind of its machines: "container" or "virtual_machine". */
    readonly kind: string;
  }[];
  readonly storage_tiers: readonly {
    readonly storage_tier: string;
    readonly medium: string;
    readonly use: string;
    /** For one GB and a month, in the currency of the catalog. */
    readonly monthly_cost_per_gb: number;
  }[];
  readonly zones: readonly {
    readonly zone: string;
    readonly title: string;
  }[];
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
    /** "percent", "per second", "per minute", "bytes per second", "bytes", "seconds" or "count". */
    readonly unit: string;
    /** Values of database_type that have it; empty means all. */
    readonly engines: readonly string[];
    /**
     * "gauge" is the value at the time of a sample, "rate" the increase since the sample before, divided by the time
     * between.
     */
    readonly kind: string;
    readonly meaning: string;
    /** Source of the samples: "machine" or "engine". Null for a metric that this version does not collect. */
    readonly source: string | null;
  }[];
}

/** A key with its secret. */
export interface CreatedApiKey {
  readonly id: string;
  /** Shown this once. */
  readonly secret: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly previous_secret_expires_at: string | null;
}

/** A token with its text. */
export interface CreatedToken {
  readonly id: string;
  /** Shown this once. */
  readonly token: string;
  readonly scopes: readonly string[];
  readonly resources: readonly TokenResource[];
  readonly expires_at: string | null;
  readonly created_at: string;
}

/** An endpoint with its secret. */
export interface CreatedWebhook {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[] | null;
  readonly active: boolean;
  readonly retry_policy: RetryPolicy;
  readonly disabled_at: string | null;
  readonly warning: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  /** 64 hex characters: the key of the signatures as it stands. It is not shown again. */
  readonly secret: string;
}

/** Something that waits to be done to a service. */
export interface PendingUpdate {
  readonly id: string;
  readonly kind: UpdateKind;
  readonly title: string;
  readonly description: string;
  /**
   * Version of the engine, of the kernel or of the keeper, or else image or kernel, that the service has; null for a
   * restart.
   */
  readonly from: string | null;
  readonly to: string | null;
  /** It does not wait for the window longer than its notice. */
  readonly urgent: boolean;
  readonly available_since: string;
  /** When it begins by itself; null when only a request applies it. */
  readonly apply_at: string | null;
  /** The engine is stopped and started: clients lose their connections. */
  readonly requires_restart: boolean;
  /** What stands against it now. */
  readonly blocked_reason: string | null;
  /**
   * It changes the order of text that indexes of the service were made with, and is applied only with
   * accept_text_order_change.
   */
  readonly changes_text_order: boolean;
  /**
   * Why no snapshot of the data can be taken before it, so that only the image can be rolled back; absent when one can,
   * and where none is needed.
   */
  readonly no_snapshot_reason: string | null;
}

/** A bearer token, without its text. */
export interface Token {
  readonly id: string;
  readonly scopes: readonly string[];
  /** Objects that it is limited to; everything of the organization when empty. */
  readonly resources: readonly TokenResource[];
  readonly expires_at: string | null;
  readonly created_at: string;
  /** The maker, as the audit log names it. */
  readonly created_by: string | null;
  /** Up to a minute old. */
  readonly last_used_at: string | null;
  /** Address of the caller. */
  readonly last_used_from: string | null;
}

export interface SignalledQuery {
  readonly query_run_id: string;
  readonly pid: number;
}

/** What became of a request that is answered later. */
export interface Task {
  readonly task_id: string;
  /** Type of its work, such as "queue_enqueue". */
  readonly type: string;
  readonly status: TaskStatus;
  /** Of a completed task: the result, in the form that the method documents which handed out the id. */
  readonly result: unknown;
  /** Of a failed task. */
  readonly error: Fault | null;
  readonly created_at: string;
  readonly finished_at: string | null;
}

/** How far the operation in progress is. */
export interface TaskSummary {
  readonly status: ServiceStatus;
  readonly current_task: string | null;
  readonly progress_pct: number;
  readonly operation_id: string | null;
}

/** From a time on, until another one. */
export interface TimeRange {
  readonly from: string;
  readonly to: string;
}

/** What a token is limited to. */
export interface TokenResource {
  /** managed-service. */
  readonly kind: "managed-service";
  readonly id: string;
}

/** A question as SQL. */
export interface Translation {
  /** For execute; empty when there is none that may run. */
  readonly sql: string;
  readonly explanation: string;
  readonly database_type: string;
  /** Why there is no statement, or the model's own doubts about it; null for none. */
  readonly warning: string | null;
}

/** An upgrade of a service to another version of its engine: its findings, and the operation once it has begun. */
export interface Upgrade {
  readonly service_id: string;
  readonly from_version: string;
  readonly to_version: string;
  /** All findings, those that prevent the upgrade first. */
  readonly findings: readonly UpgradeFinding[];
  /** Null when only a check was asked for. */
  readonly operation: Operation | null;
}

/** Something to know before an upgrade. */
export interface UpgradeFinding {
  /**
   * "not_ready", "no_image", "parameter_unknown", "no_snapshot", "no_backup", "replicas", "text_order", "downtime" or
   * "connections"; of PostgreSQL's data "no_room", "prepared_transactions", "replication_slots", "closed_databases",
   * "invalid_databases", "column_types", "not_null_constraints", "extensions" or "statistics_views".
   */
  readonly code: string;
  /** The upgrade is refused because of it. */
  readonly blocking: boolean;
  readonly message: string;
}

/** An endpoint that gets events as signed requests. */
export interface Webhook {
  readonly id: string;
  readonly url: string;
  /** Types that the endpoint gets; null for all, an empty list for none. */
  readonly events: readonly string[] | null;
  readonly active: boolean;
  readonly retry_policy: RetryPolicy;
  /** When the platform switched the endpoint off because it had failed for 5 days; null while it is active. */
  readonly disabled_at: string | null;
  /** Says so when deliveries go over plain HTTP, where others can read them. */
  readonly warning: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface App {
  readonly id: string;
  readonly name: string;
  readonly status: AppStatus;
  readonly hosting: AppHosting;
  /** Where its users find it. */
  readonly home_url: string | null;
  readonly attachments: readonly Attachment[];
  readonly created_at: string;
  readonly updated_at: string;
  readonly domains: readonly AppDomain[];
}

/** A domain of the app's owner. */
export interface AppDomain {
  readonly id: string;
  readonly app_id: string;
  readonly name: string;
  readonly status: AppDomainStatus;
  readonly verification: AppDomainRecord;
  readonly created_at: string;
  readonly verified_at: string | null;
}

/** The record that shows whose a domain is. */
export interface AppDomainRecord {
  /** TXT. */
  readonly type: string;
  readonly name: string;
  readonly value: string;
}

/** A database that an app uses. */
export interface Attachment {
  readonly id: string;
  /** "postgresql". */
  readonly kind: string;
  readonly service_id: string;
  readonly database_name: string;
  readonly status: AttachmentStatus;
  readonly app_id: string;
}

/** The sign-in of one app. */
export interface AppAuth {
  readonly id: string;
  readonly app_service_id: string;
  readonly database_service_id: string;
  readonly attachment_id: string;
  /** The `iss` of its tokens, and where discovery begins. */
  readonly issuer_url: string;
  readonly fallback_domain: string;
  readonly status: AuthStatus;
  /** Null until the schema is migrated. */
  readonly schema_version_applied: string | null;
  readonly theme: AuthTheme;
  readonly idp_providers: readonly AuthIdpProvider[];
  /** While it is Failed: the step that failed, and what mends it. */
  readonly failure_reason: string | null;
  readonly custom_domain: string | null;
  readonly smtp: AuthSmtp;
  readonly health: AuthHealth;
  readonly sign_up: AuthSignUp;
  readonly mails_per_hour: number;
  readonly created_at: string;
  readonly updated_at: string;
}

/** What pages and mails look like. */
export interface AuthTheme {
  readonly display_name: string;
  /** #rrggbb. */
  readonly brand_color: string;
  readonly logo_url: string | null;
}

/** Another provider that end users may sign in with. */
export interface AuthIdpProvider {
  readonly provider: string;
  readonly issuer_url: string;
  readonly client_id: string;
  readonly scopes: readonly string[];
  /** What the provider has to have registered as redirect URI. */
  readonly callback_url: string;
}

/** The app owner's mail server, without what it is signed in to with. */
export interface AuthSmtp {
  readonly host: string;
  readonly port: number;
  readonly from_address: string;
  readonly from_name: string;
}

/** What becomes of sign-ins now. */
export interface AuthHealth {
  /** "healthy" or "degraded". */
  readonly status: string;
  readonly reason: string | null;
  readonly since: string;
}

export interface AuthKey {
  readonly kid: string;
  /** RS256. */
  readonly algorithm: string;
  readonly status: AuthKeyStatus;
  readonly activated_at: string;
  readonly retires_at: string | null;
}

export interface EnabledAuth {
  readonly auth: AppAuth;
  readonly signing_keys: readonly AuthKey[];
}

export interface RotatedAuthKey {
  readonly signing_key: AuthKey;
}

/** The id of a result that comes later, for 24 hours. */
export interface AuthTask {
  readonly task_id: string;
}

export interface AuthUser {
  readonly id: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly created_at: string;
  readonly last_sign_in_at: string | null;
}

export interface AuthSession {
  readonly id: string;
  readonly created_at: string;
  readonly last_seen_at: string;
  readonly expires_at: string;
  readonly revoked_at: string | null;
  readonly user_agent: string | null;
  readonly ip: string | null;
}

export interface AuthEvent {
  readonly id: string;
  readonly type: string;
  readonly occurred_at: string;
  readonly user_id: string | null;
  readonly client_id: string | null;
  readonly ip: string | null;
}

/** A program that signs the app's users in. */
export interface AuthClient {
  readonly client_id: string;
  readonly name: string;
  readonly type: AuthClientType;
  readonly redirect_uris: readonly string[];
  readonly post_logout_redirect_uris: readonly string[];
  readonly allowed_origins: readonly string[];
  /** False: it sends a nonce instead. */
  readonly require_pkce: boolean;
  /** In the answer that made it only. */
  readonly client_secret: string | null;
}

export interface AuthSmtpTest {
  readonly success: boolean;
  readonly error: string | null;
}

export interface AuthKeys {
  readonly keys: readonly AuthKey[];
}

export interface AuthClients {
  readonly clients: readonly AuthClient[];
}

export interface DeployedProject {
  readonly project_id: string;
  readonly deployment_id: string;
  readonly name: string;
  readonly status: ProjectStatus;
  readonly plan: readonly PlanEntry[];
}

export interface Deployment {
  readonly id: string;
  readonly project_id: string;
  readonly status: DeploymentStatus;
  readonly error: string | null;
  readonly plan: readonly PlanEntry[];
  /** Of now while it is in progress, else of when it ended. */
  readonly project_status: ProjectStatus;
  /** Likewise. */
  readonly resources: readonly {
    readonly logical_name: string;
    readonly kind: string;
    /** Null before it is made. */
    readonly resource_id: string | null;
    /** Pending, Provisioning, Running, Updating, Failed, Deleting or Deleted. */
    readonly status: string;
    readonly status_detail: string | null;
    /** False: the newest descriptor does not name it. */
    readonly managed: boolean;
  }[];
  readonly progress_pct: number;
  /** The caller, as the audit log names it. */
  readonly actor: string;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
}

/** The parent of a resource. */
export interface ManagedBy {
  /** project, stack or pipeline. */
  readonly kind: string;
  readonly id: string;
}

export interface Pipeline {
  readonly id: string;
  readonly template_id: string;
  readonly name: string;
  readonly zone: string;
  readonly status: PipelineStatus;
  readonly status_detail: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface PipelineDetail {
  readonly id: string;
  readonly template_id: string;
  readonly name: string;
  readonly zone: string;
  readonly status: PipelineStatus;
  readonly status_detail: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  /** Names of its services. */
  readonly services: readonly string[];
  readonly members: readonly {
    readonly role: string;
    readonly database_type: string;
    /** Null before it is made. */
    readonly service_id: string | null;
    readonly status: string;
    readonly status_detail: string | null;
    readonly healthy: boolean;
  }[];
  /** Of the services that run. */
  readonly connections: readonly {
    readonly role: string;
    readonly connections: {
      readonly bootstrap_servers: string | null;
      readonly security_protocol: string | null;
      readonly sasl_mechanism: string | null;
      /** With the password, for callers with services:secrets. */
      readonly connection_uri: string | null;
      readonly endpoint: string | null;
      readonly username: string | null;
      readonly password: string | null;
    };
  }[];
}

export interface PipelineTemplate {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly available: boolean;
  /** Why it cannot be launched here. */
  readonly unavailable_reason: string | null;
  readonly services: readonly {
    readonly role: string;
    readonly database_type: string;
    readonly version: string | null;
    readonly default_plan: string;
    readonly storage_gb: number;
    readonly extensions: readonly string[];
  }[];
  /** Null while an engine of it is missing. */
  readonly estimated_monthly_cost: number | null;
  readonly currency: string;
}

/** A difference at one path. Values of env are not shown. */
export interface PlanChange {
  /** Such as plan_name or env.KEY. */
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

export interface PlanEntry {
  readonly logical_name: string;
  readonly kind: string;
  readonly action: PlanAction;
  readonly changes: readonly PlanChange[];
  /** What the descriptor says and the resource has not: recorded, not applied. */
  readonly pending_changes: readonly PlanChange[];
  /** Why nothing is changed. */
  readonly reason: string | null;
  /** Paths at which the resource is not as it was made. */
  readonly drift: readonly string[];
  readonly monthly_cost: number;
}

export interface Project {
  readonly id: string;
  readonly name: string;
  readonly status: ProjectStatus;
  readonly status_detail: string | null;
  /** Of its resources: healthy, degraded or unknown. */
  readonly health: string;
  readonly last_deployment_id: string;
  readonly resources: readonly {
    readonly logical_name: string;
    readonly kind: string;
    /** Null before it is made. */
    readonly resource_id: string | null;
    /** Pending, Provisioning, Running, Updating, Failed, Deleting or Deleted. */
    readonly status: string;
    readonly status_detail: string | null;
    /** False: the newest descriptor does not name it. */
    readonly managed: boolean;
  }[];
  readonly monthly_cost: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface ProjectDrift {
  readonly resources: readonly {
    readonly logical_name: string;
    readonly kind: string;
    /** `before` is what was recorded, `after` what there is. */
    readonly changes: readonly PlanChange[];
  }[];
}

export interface ProjectPlan {
  readonly plan: readonly PlanEntry[];
  /** Sent with a deployment, it is refused when the plan is another one by then. */
  readonly plan_digest: string;
  /** In the currency of the catalog. */
  readonly monthly_cost: number;
  /** Against what the project costs now. */
  readonly cost_delta: number;
  readonly currency: string;
  readonly warnings: readonly string[];
}

/** JSON Schema of descriptors. */
export interface SchemaText {
  readonly text: string;
}

export interface Stack {
  readonly id: string;
  readonly name: string;
  readonly status: StackStatus;
  readonly status_detail: string | null;
  /** Of its console, once it is Running; null where it has none. */
  readonly endpoint_url: string | null;
  readonly resources: readonly {
    readonly symbolic_name: string;
    readonly kind: string;
    readonly status: string;
    readonly status_detail: string | null;
    /** Null before it is made. */
    readonly service_id: string | null;
  }[];
  readonly template_name: string;
  readonly template_version: string;
  readonly monthly_cost: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface StackMigration {
  readonly id: string;
  readonly stack_id: string;
  readonly from_version: string;
  readonly to_version: string;
  readonly status: MigrationStatus;
  readonly status_detail: string | null;
  readonly steps: readonly {
    readonly symbolic_name: string;
    readonly action: string;
    /** Pending, Applying, Completed or Failed. */
    readonly status: string;
    readonly error: string | null;
  }[];
  readonly created_at: string | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
}

export interface StackPreview {
  readonly template_name: string;
  readonly currency: string;
  readonly monthly_total: number;
  readonly line_items: readonly {
    readonly symbolic_name: string;
    readonly kind: string;
    readonly description: string;
    readonly monthly_cost: number;
    /** It depends on use, and is this at most. */
    readonly is_ceiling: boolean;
  }[];
  readonly warnings: readonly string[];
}

export interface StackTemplate {
  readonly name: string;
  readonly version: string;
  readonly title: string;
  readonly description: string;
  readonly available: boolean;
  /** Why it cannot be launched here. */
  readonly unavailable_reason: string | null;
  readonly resources: readonly {
    readonly symbolic_name: string;
    readonly kind: string;
    readonly depends_on: readonly string[];
  }[];
}

export interface UpgradePreview {
  readonly from_version: string;
  readonly to_version: string;
  readonly changes: readonly {
    readonly symbolic_name: string;
    readonly kind: string;
    readonly change: UpgradeChangeType;
    /** redeploy_app, scale_app or scale_service. */
    readonly action: string | null;
    /** The members that change, as a JSON object; values of env are not shown. */
    readonly target_spec: unknown;
    readonly reason: string | null;
  }[];
  readonly current_monthly_cost: number;
  readonly new_monthly_cost: number;
  readonly cost_delta: number;
  readonly blocked: boolean;
  readonly blocked_reasons: readonly string[];
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
  /** The operation in progress that adds or removes it. */
  readonly operation_id: string | null;
}

/** Of a task: `task_id` to `error`. Without one: `messages` and `next_cursor`. */
export interface QueueMessages {
  readonly task_id: string | null;
  readonly status: TaskStatus | null;
  /** Of a completed task. */
  readonly result: unknown;
  /** Of a failed task. */
  readonly error: Fault | null;
  readonly messages: readonly QueueMessage[];
  readonly next_cursor: string | null;
}

export interface ClaimedMessages {
  readonly messages: readonly ClaimedMessage[];
}

/** Receipts of messages that were changed, and of messages whose claims had ended. */
export interface Receipts {
  /** Receipts of messages that it was done to. */
  readonly done: readonly string[];
  /** Receipts of messages whose claims had ended. */
  readonly lost: readonly string[];
}

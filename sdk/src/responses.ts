// Printed from the protos by `npm run generate`. Times are RFC 3339 strings in UTC.

/** Start of the interval, a multiple of the resolution, and the average, minimum and maximum of the metric in it. */
export type MetricPoint = readonly [unixSeconds: number, average: number, minimum: number, maximum: number];

/** The condition of a rule: "gt" fires above the threshold, "lt" below it. */
export type AlertCondition = "gt" | "lt";

/** The effect of missing samples: "ignore" has none, "fire" fires an alert after 60 s. */
export type AlertNoData = "ignore" | "fire";

export type AlertSeverity = "info" | "warning" | "critical";

export type AlertState = "ok" | "pending" | "firing" | "no_data" | "paused";

export type AppDeploymentStatus = "deploying" | "succeeded" | "failed";

export type AppDomainCertificateState = "pending" | "issued" | "failed";

export type AppDomainStatus = "pending" | "verified";

export type AppHosting = "external" | "platform";

export type AppNodeStatus = "Starting" | "Running" | "Unreachable";

export type AppStatus = "Running" | "Pending" | "Provisioning" | "Deploying" | "Error" | "Stopped";

export type AttachmentStatus = "healthy" | "unhealthy";

export type AuthClientType = "public" | "confidential";

export type AuthKeyStatus = "active" | "retiring" | "retired";

export type AuthSignUp = "open" | "closed";

export type AuthStatus = "ProvisioningSchema" | "Active" | "Failed" | "Disabled";

export type BackupKind = "full" | "incremental" | "snapshot";

/** Status of a backup; "completed" and "failed" are final. */
export type BackupStatus = "pending" | "running" | "verifying" | "completed" | "failed";

/** The reason of a backup. */
export type BackupTrigger = "schedule" | "request" | "first" | "final" | "gap" | "upgrade";

/** "automated" backups are created by the schedule and deleted at the end of their retention. */
export type BackupType = "automated" | "manual";

export type ChannelType = "email" | "webhook";

export type DeploymentStatus = "Accepted" | "Applying" | "Completed" | "Failed" | "Aborted";

export type DestinationType =
  | "apm_platform"
  | "prometheus_remote_write"
  | "otlp"
  | "search_cluster"
  | "log_aggregator"
  | "log_saas"
  | "cloud_monitoring";

export type ExportDataType = "metrics" | "logs" | "both";

export type FilesAccess = "readwrite" | "readonly";

/** The combined result of the checks; "unknown" before the first report of an agent. */
export type HealthStatus = "healthy" | "degraded" | "unhealthy" | "unknown";

export type HostedAppAuth = "none" | "login_form";

export type InferenceKeyStatus = "active" | "suspended";

export type IssuerDomainChoice = "fallback" | "custom";

/** The level of a log line, least severe first. */
export type LogLevel = "debug" | "info" | "warning" | "error";

/** The state of a message. An "exhausted" message has no attempts left and becomes dead at the next sweep. */
export type MessageState = "ready" | "inflight" | "delayed" | "exhausted";

export type MigrationStatus = "Accepted" | "Applying" | "Completed" | "Failed" | "up_to_date";

/** The role of a node. The primary accepts writes; replicas follow it. */
export type NodeRole = "primary" | "replica";

/** The status of a node. */
export type NodeStatus = "Provisioning" | "Running" | "Stopped" | "Error" | "Unreachable";

/** The status of an operation; "completed", "failed" and "cancelled" are final. */
export type OperationStatus = "pending" | "running" | "completed" | "failed" | "cancelled";

/**
 * The state of a parameter in the engine. A "rejected" value was rolled back, because the engine does not run with it.
 * "pending": a node of the service has not applied it yet, and will without a restart.
 */
export type ParameterStatus = "applied" | "pending_restart" | "rejected" | "pending";

export type PipelineStatus = "deploying" | "running" | "degraded" | "deleting";

/** The action of a deployment on a resource. */
export type PlanAction = "create" | "update" | "noop" | "unmanaged";

/** The status of a project. */
export type ProjectStatus =
  | "Pending"
  | "Provisioning"
  | "Wiring"
  | "Running"
  | "RollingBack"
  | "Failed"
  | "Deleting"
  | "Deleted";

export type QueueStatus = "Pending" | "Provisioning" | "Active" | "Deprovisioning" | "Failed";

/**
 * The retries of an endpoint: "standard" makes three attempts in 3 s, "extended" five more, the last one 10 hours after
 * its predecessor.
 */
export type RetryPolicy = "standard" | "extended";

/** The role of a member. Each role includes the permissions of those before it. */
export type Role = "viewer" | "developer" | "admin" | "owner";

/** The status of a service. Clients must accept unknown values. */
export type ServiceStatus = "Pending" | "Provisioning" | "Running" | "Stopped" | "Error" | "Upgrading";

export type StackStatus =
  | "Pending"
  | "Provisioning"
  | "Wiring"
  | "Running"
  | "Upgrading"
  | "RollingBack"
  | "Failed"
  | "Deleting";

export type SyncState = "streaming" | "catchup" | "starting" | "disconnected";

/** The status of a task; "completed" and "failed" are final. */
export type TaskStatus = "pending" | "running" | "completed" | "failed";

/**
 * The kind of an update: "engine_minor" is a new minor version, "image" newer packages, "guest_kernel" a new kernel of
 * virtual machines, "restart" parameters that require one, "keeper" a newer keeper, whose start restarts the machine.
 */
export type UpdateKind = "engine_minor" | "image" | "restart" | "guest_kernel" | "keeper";

export type UpgradeChangeType = "unchanged" | "in_place" | "blocked";

/**
 * The role of a user. "custom" are users that were created in SQL with their own privileges; it cannot be requested.
 */
export type UserRole = "admin" | "readwrite" | "readonly" | "custom";

/** A day of the week, in UTC. */
export type Weekday = "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday";

/** A rule with its state. */
export interface AlertRule {
  readonly id: string;
  readonly service_id: string;
  readonly name: string;
  /** Name of a metric in the catalog, such as "cpu". */
  readonly metric: string;
  readonly condition: AlertCondition;
  readonly threshold: number;
  readonly severity: AlertSeverity;
  /** Minutes for which the condition must be true at every sample before the rule fires. */
  readonly duration_minutes: number;
  /** Channel of notifications; null for the default channel of the organization, if there is one. */
  readonly notification_channel_id: string | null;
  readonly no_data: AlertNoData;
  readonly paused: boolean;
  readonly state: AlertState;
  /** Time since which the condition is true while the rule is pending or firing; null otherwise. */
  readonly since: string | null;
  /** Newest value of the node that determines the state; null without one. */
  readonly value: number | null;
  /** The node that determines the state; null without one. */
  readonly node_id: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** An API key without its secret. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expires_at: string | null;
  readonly created_at: string;
  /** Creator in the format of the audit log, such as "user:anna"; "installation" for the first one. */
  readonly created_by: string | null;
  /** Time of the last use, at most one minute old. */
  readonly last_used_at: string | null;
  /** IP address of the last caller. */
  readonly last_used_from: string | null;
  /** Time until which the secret before the last rotation is valid. */
  readonly previous_secret_expires_at: string | null;
}

export interface App {
  readonly id: string;
  readonly name: string;
  readonly status: AppStatus;
  readonly hosting: AppHosting;
  /** URL of the app's home page. */
  readonly home_url: string | null;
  readonly attachments: readonly Attachment[];
  readonly created_at: string;
  readonly updated_at: string;
  readonly domains: readonly AppDomain[];
  /** Image, settings and machines of a hosted app; null for others. */
  readonly hosted: HostedApp | null;
  /** The operation in progress. */
  readonly operation: Operation | null;
  /** The project, stack or pipeline that the app belongs to; null without one. */
  readonly managed_by: ManagedBy | null;
}

/** The sign-in of one app. */
export interface AppAuth {
  readonly id: string;
  readonly app_service_id: string;
  readonly database_service_id: string;
  readonly attachment_id: string;
  /** Issuer URL: the claim `iss` of tokens and the base of discovery. */
  readonly issuer_url: string;
  readonly fallback_domain: string;
  readonly status: AuthStatus;
  /** Version of the applied database schema; null before the first migration. */
  readonly schema_version_applied: string | null;
  readonly theme: AuthTheme;
  readonly idp_providers: readonly AuthIdpProvider[];
  /** The failed step and its remedy while the status is Failed; null otherwise. */
  readonly failure_reason: string | null;
  readonly custom_domain: string | null;
  readonly smtp: AuthSmtp;
  readonly health: AuthHealth;
  readonly sign_up: AuthSignUp;
  readonly mails_per_hour: number;
  readonly created_at: string;
  readonly updated_at: string;
}

/** User name and password of a login form. */
export interface AppCredentials {
  readonly username: string;
  readonly password: string;
}

/** An app that is being deleted. */
export interface AppDeletion {
  readonly id: string;
  /** The operation in progress; null if the app is deleted. */
  readonly operation: Operation | null;
}

/** An image of a hosted app with its settings. */
export interface AppDeployment {
  readonly id: string;
  /** Number of the deployment, from 1 on. */
  readonly number: number;
  readonly status: AppDeploymentStatus;
  /** The image as it was requested, such as "shop:1". */
  readonly image_ref: string;
  /** Digest of the image; null until the registry has named it. */
  readonly image_digest: string | null;
  /** True for the deployment that clients reach. */
  readonly serves: boolean;
  /** Reason of a failure, or of a delay. */
  readonly reason: string | null;
  readonly created_at: string;
  readonly finished_at: string | null;
}

export interface AppDeployments {
  readonly deployments: readonly AppDeployment[];
}

/** A domain of an app. */
export interface AppDomain {
  readonly id: string;
  readonly app_id: string;
  readonly name: string;
  readonly status: AppDomainStatus;
  readonly verification: AppDomainRecord;
  readonly created_at: string;
  readonly verified_at: string | null;
  /** Certificate by a public authority; null before the verification, and where ACME is not set up. */
  readonly certificate: AppDomainCertificate | null;
}

/**
 * The certificate of a domain by a public authority. Until there is one, the installation's authority has issued it.
 */
export interface AppDomainCertificate {
  readonly state: AppDomainCertificateState;
  /** Name of the authority; null before the first certificate. */
  readonly issuer: string | null;
  readonly expires_at: string | null;
  /** Reason why there is no newer certificate, such as a limit of the authority; null while nothing is wrong. */
  readonly error: string | null;
  /** Time of the next attempt after one that failed. */
  readonly next_attempt_at: string | null;
}

/** The DNS record that proves the ownership of a domain. */
export interface AppDomainRecord {
  /** Type of the record: "TXT". */
  readonly type: string;
  readonly name: string;
  readonly value: string;
}

/** A machine of a hosted app. */
export interface AppNode {
  readonly id: string;
  readonly status: AppNodeStatus;
  readonly zone: string;
  /** Id of the deployment whose release serves on it; null before the first one. */
  readonly deployment_id: string | null;
  /** Version of the agent; null without a connection. */
  readonly agent_build: string | null;
  /** Floating IP of the app, at which clients reach its machines; null without one. */
  readonly floating_ip: string | null;
}

export interface AppNodes {
  readonly nodes: readonly AppNode[];
}

/** The registry of images, and the organization's part of it. */
export interface AppRegistry {
  /** Host and port. */
  readonly host: string;
  /** First part of the names of its images, such as "<repository>/shop:1". */
  readonly repository: string;
}

/** A database, a files service or another hosted app that is attached to an app. */
export interface Attachment {
  readonly id: string;
  /** The database type of the service, such as "postgresql", or "files" or "app". */
  readonly kind: string;
  readonly service_id: string;
  /** Empty for a files service. */
  readonly database_name: string;
  readonly status: AttachmentStatus;
  readonly app_id: string;
  /** Id of the key that the app uses at a files service. */
  readonly access_key_id: string | null;
  /**
   * Variables for the app by which it finds its files services, with secrets: S3_ENDPOINT, S3_BUCKET, S3_ACCESS_KEY and
   * S3_SECRET for one; with several, each has four with the prefix of its name, such as MEDIA_S3_ACCESS_KEY_ID. Only in
   * the response of the creation, and only for an app without an image.
   */
  readonly variables: readonly AttachmentVariable[];
  /** Prefix of the variables that a hosted app has for the attachment if it needs one, such as ORDERS. */
  readonly prefix: string | null;
  /** User of the database by which a hosted app connects; null without one. */
  readonly username: string | null;
  /** The deployment by which a hosted app gets the variables. Only in the response of the creation. */
  readonly operation: Operation | null;
}

/** A variable of an app's environment. */
export interface AttachmentVariable {
  readonly name: string;
  readonly value: string;
}

/** A change or a read of a secret, successful or refused, with its caller. */
export interface AuditLogEntry {
  readonly id: string;
  readonly time: string;
  /** Caller: user:NAME, api_key:ID or token:ID. */
  readonly actor: string;
  /** IP address of the client. */
  readonly source: string;
  /** Action, such as "managed-service.create". */
  readonly action: string;
  readonly object_kind: string;
  readonly object_id: string;
  /** "ok" or "refused". */
  readonly result: "ok" | "refused";
  /** Request-Id of the call. */
  readonly request_id: string;
  /**
   * Details of the action. For a statement of the query console: its text, shortened and without constants; null for
   * none.
   */
  readonly detail: string | null;
}

/** An OAuth client: a program that signs the app's users in. */
export interface AuthClient {
  readonly client_id: string;
  readonly name: string;
  readonly type: AuthClientType;
  readonly redirect_uris: readonly string[];
  /** URIs to which `/logout` returns. */
  readonly post_logout_redirect_uris: readonly string[];
  /** Origins whose scripts may call `/token`, `/userinfo` and `/revoke` (CORS). */
  readonly allowed_origins: readonly string[];
  /** True if the client must use PKCE; otherwise it must send a nonce. */
  readonly require_pkce: boolean;
  /** Client secret, only in the response of its creation or rotation. */
  readonly client_secret: string | null;
}

export interface AuthClients {
  readonly clients: readonly AuthClient[];
}

export interface AuthEvent {
  readonly id: string;
  readonly type: string;
  readonly occurred_at: string;
  readonly user_id: string | null;
  readonly client_id: string | null;
  readonly ip: string | null;
}

/** Health of the sign-in. */
export interface AuthHealth {
  /** "healthy" or "degraded"; "unknown" while the sign-in is not Active. */
  readonly status: string;
  readonly reason: string | null;
  readonly since: string;
}

/** An identity provider that end users may sign in with. */
export interface AuthIdpProvider {
  readonly provider: string;
  readonly issuer_url: string;
  readonly client_id: string;
  readonly scopes: readonly string[];
  /** Redirect URI to register at the provider. */
  readonly callback_url: string;
}

export interface AuthKey {
  readonly kid: string;
  /** JWS algorithm: "RS256". */
  readonly algorithm: string;
  readonly status: AuthKeyStatus;
  readonly activated_at: string;
  readonly retires_at: string | null;
}

export interface AuthKeys {
  readonly keys: readonly AuthKey[];
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

/** The mail server of the app, without its credentials. */
export interface AuthSmtp {
  readonly host: string;
  readonly port: number;
  readonly from_address: string;
  readonly from_name: string;
}

export interface AuthSmtpTest {
  readonly success: boolean;
  readonly error: string | null;
}

/** Id of a task, whose result can be fetched for 24 hours. */
export interface AuthTask {
  readonly task_id: string;
}

/** Appearance of pages and mails. */
export interface AuthTheme {
  readonly display_name: string;
  /** Color in the format #rrggbb. */
  readonly brand_color: string;
  readonly logo_url: string | null;
}

export interface AuthUser {
  readonly id: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly created_at: string;
  readonly last_sign_in_at: string | null;
}

/** A backup of a service. */
export interface Backup {
  readonly id: string;
  readonly service_id: string;
  readonly backup_type: BackupType;
  /** Equal to backup_type. */
  readonly type: BackupType;
  readonly status: BackupStatus;
  /** Stored size, compressed and encrypted; null until it is known. */
  readonly size_bytes: number | null;
  readonly created_at: string;
  /** Error of a failed backup or drill; null otherwise. */
  readonly error_message: string | null;
  readonly encryption_enabled: boolean;
  readonly encryption_algorithm: string;
  readonly kind: BackupKind;
  readonly trigger: BackupTrigger;
  /** Size of the source data; null until it is known. */
  readonly source_bytes: number | null;
  readonly progress_pct: number;
  /** Duration from the start to the end, or until now. */
  readonly duration_seconds: number | null;
  /** Version of the engine. */
  readonly version: string;
  readonly database_type: string;
  /** Time at which it is deleted; null for a backup without an end of its retention. */
  readonly expires_at: string | null;
  /** Version of the service's backup key that encrypts it. */
  readonly key_version: number;
  /** Time of the last successful verification by request; null for never. */
  readonly verified_at: string | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /**
   * A restore of this backup has at least the data that were acknowledged before this time. Null until it is completed.
   */
  readonly restores_to: string | null;
  /** Id of the operation that takes it or last verified it. */
  readonly operation_id: string | null;
  /** The base of an incremental backup, which is retained until this one is deleted; null otherwise. */
  readonly base_backup_id: string | null;
}

/** The key that encrypts the data keys of backups. */
export interface BackupKey {
  readonly service_id: string;
  /** Version of the key for the next backups. */
  readonly key_version: number;
  readonly created_at: string;
  /** Time of the next automatic rotation. */
  readonly rotates_at: string;
}

/** Time of the daily backup in UTC, and retention of automated backups. */
export interface BackupSettings {
  readonly service_id: string;
  /** Hour of the daily backup in UTC. The default is derived from the service's id. */
  readonly hour: number;
  readonly minute: number;
  /** Retention of automated backups in days. */
  readonly retention_days: number;
}

/** The catalog of this installation: engines, plans, storage, zones, prices and limits. */
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
      readonly title: string;
    }[];
    readonly default_version: string;
    readonly parameters: readonly {
      readonly name: string;
      /** "integer", "real", "boolean", "enum", "text", "bytes" or "duration". */
      readonly type: string;
      readonly description: string;
      /** Default value; null if it depends on the plan or on the number of nodes. */
      readonly default: string | null;
      readonly minimum: string | null;
      readonly maximum: string | null;
      readonly values: readonly string[];
      readonly unit: string | null;
      readonly needs_restart: boolean;
      /** Engine versions with this parameter; empty for all. */
      readonly versions: readonly string[];
    }[];
    /** Extensions that the default user may create; empty where the engine has none. */
    readonly extensions: readonly string[];
    /** Null for an engine without backups. */
    readonly backups: {
      /** Kind of a base backup: "full" or "snapshot". */
      readonly kind: string;
      /**
       * Points in time that can be restored: "any_second" of the restore window, or "snapshots", the times of backups.
       */
      readonly restore_points: string;
      /** True if services can be forked. */
      readonly fork: boolean;
      /** True if daily backups can be incremental. */
      readonly increments: boolean;
    } | null;
    /** Null for an engine without a pooler. */
    readonly pooler: {
      readonly port: number;
      /**
       * "transaction" and "session", by which many clients share few sessions; the first is the default. Empty for a
       * pooler that forwards each client to the primary.
       */
      readonly modes: readonly string[];
    } | null;
    /** Layouts of the databases of a new service, the default first; empty for an engine without layouts. */
    readonly layout_modes: readonly string[];
    /** Collations that a new service can have, the default first; empty for an engine whose databases choose theirs. */
    readonly server_collations: readonly string[];
    /** Features that need plugins of the engine, which the operator adds. */
    readonly features: readonly {
      readonly name: string;
      readonly description: string;
      /** False when this installation cannot provide it; the reason is in `reason`. */
      readonly available: boolean;
      readonly reason: string | null;
    }[];
  }[];
  readonly plans: readonly {
    readonly plan_name: string;
    readonly vcpu: number;
    readonly memory_gb: number;
    /** Cost of a month, in the currency of the catalog. */
    readonly monthly_cost: number;
    /** Kind of its machines: "container" or "virtual_machine". */
    readonly kind: string;
  }[];
  readonly storage_tiers: readonly {
    readonly storage_tier: string;
    readonly medium: string;
    readonly use: string;
    /** Cost of one GB in a month, in the currency of the catalog. */
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
  /** Networks that may connect by default. */
  readonly default_allowed_cidrs: readonly string[];
  /** ISO 4217 code of every price. */
  readonly currency: string;
  /** All metrics. */
  readonly metrics: readonly {
    readonly name: string;
    /** "percent", "per second", "per minute", "bytes per second", "bytes", "seconds" or "count". */
    readonly unit: string;
    /** Values of database_type with this metric; empty for all, and for hosted apps. */
    readonly engines: readonly string[];
    /**
     * "gauge" is the value at the time of a sample; "rate" is the increase since the previous sample, divided by the
     * time between them.
     */
    readonly kind: string;
    readonly meaning: string;
    /** Source of the samples: "machine" or "engine". Null for a metric that this version does not collect. */
    readonly source: string | null;
  }[];
  /** Files services, which have the same plans, storage tiers and zones as databases. */
  readonly files: {
    /** False when this installation cannot run one; the reason is in `reason`. */
    readonly available: boolean;
    readonly reason: string | null;
  };
}

export interface Channel {
  readonly id: string;
  readonly name: string;
  readonly type: ChannelType;
  readonly config: ChannelConfig;
  /** Time of the confirmation of the address; null before, and for webhooks. */
  readonly confirmed_at: string | null;
  /** Reason why alerts do not arrive, or are sent unencrypted; null for none. */
  readonly warning: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface ChannelConfig {
  /** E-mail address, for the type email. */
  readonly address: string | null;
  /** URL of the endpoint, for the type webhook. */
  readonly url: string | null;
  /** Signing secret of a webhook: 64 hex characters in the response of the creation, ******** in all others. */
  readonly secret: string | null;
}

/** An attempt to deliver an event, recorded at its end. */
export interface ChannelDelivery {
  readonly id: string;
  readonly channel_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly attempt: number;
  /** HTTP status of the response; null for e-mail, and without a response. */
  readonly response_status: number | null;
  /** Null for a successful delivery. */
  readonly error_message: string | null;
  /** Time of the delivery; null for a failed attempt. */
  readonly delivered_at: string | null;
  /** Start of the attempt. */
  readonly created_at: string;
  readonly duration_ms: number;
}

export interface ClaimedMessage {
  readonly id: number;
  readonly payload: unknown;
  /** Number of attempts, including this claim. */
  readonly attempt_count: number;
  readonly enqueued_at: string;
  readonly visible_at: string;
  /** Proof of the claim, for ack, nack and extend. */
  readonly receipt: string;
}

export interface ClaimedMessages {
  readonly messages: readonly ClaimedMessage[];
}

/** All parameters of a service, by name. */
export interface Configuration {
  readonly parameters: Readonly<Record<string, ParameterState>>;
  /** The operation that applies the change, while it is in progress. */
  readonly operation: Operation | null;
}

/** Everything that a client needs to connect, except the password. */
export interface Connection {
  /** Public host name, also in the uri. */
  readonly host: string;
  readonly port: number;
  /** The default user; empty for a service without one. */
  readonly user: string;
  readonly database: string;
  /** Connection URI without a password. */
  readonly uri: string;
  /** PEM of the certificate authority of the server certificate. */
  readonly ca_certificate: string;
  readonly listeners: readonly {
    readonly name: string;
    readonly port: number;
    /** "public", "private" or "peer". */
    readonly audience: string;
    /** "required" or "none". */
    readonly tls: string;
    /** Host name for this audience. */
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
  /** Host name for clients in the private network; port and certificate are the same. */
  readonly private_host: string;
  /** Connection URI without a password. */
  readonly private_uri: string;
  /**
   * URI for reads, without a password. Its host name resolves to the replicas, or to the primary if no replica is
   * healthy. Empty for a service whose nodes elect their leader, which has no replicas.
   */
  readonly replica_uri: string;
  /**
   * URI with all nodes, without a password, for clients that find the primary themselves; null for engines whose
   * clients cannot.
   */
  readonly all_nodes_uri: string | null;
  /** URI of the pooler, without a password; null while it is disabled. */
  readonly pooled_uri: string | null;
  /**
   * JDBC URL, ADO.NET connection string and URI of T-SQL clients, and URI of PostgreSQL's own protocol, all without a
   * password; null for other engines.
   */
  readonly jdbc_url: string | null;
  readonly ado_connection_string: string | null;
  readonly sqlserver_uri: string | null;
  readonly postgresql_uri: string | null;
  /**
   * Brokers by the names of all nodes, such as `bus-1.example:9092,bus-2.example:9092`, for clients that take a list
   * instead of a URI; null for other engines.
   */
  readonly bootstrap_servers: string | null;
  /** Protocol setting of such clients: `SASL_SSL`, which is users' passwords over TLS. */
  readonly security_protocol: string | null;
  /** Mechanisms by which such clients may sign in, the weakest first; empty for other engines. */
  readonly sasl_mechanisms: readonly string[];
  /** Brokers by their private names, at the port of the private listener; null while it is disabled. */
  readonly private_bootstrap_servers: string | null;
  /** `SASL_PLAINTEXT`, which is users' passwords by SCRAM, and data without TLS. */
  readonly private_security_protocol: string | null;
  readonly private_sasl_mechanisms: readonly string[];
}

/** A consumer group in a service's engine. */
export interface ConsumerGroup {
  readonly service_id: string;
  readonly name: string;
  /** State by the engine: "Empty", "Stable", "PreparingRebalance", "CompletingRebalance" or "Dead". */
  readonly state: string;
  /** Records that it has not consumed, over all partitions. */
  readonly lag: number;
  /** Offsets by partition; empty in lists. */
  readonly offsets: readonly ConsumerGroupOffset[];
}

export interface ConsumerGroupOffset {
  readonly topic: string;
  readonly partition: number;
  /** The next record that it consumes. */
  readonly offset: number;
  readonly end_offset: number;
  readonly lag: number;
}

/** An API key with its secret. */
export interface CreatedApiKey {
  readonly id: string;
  /** The secret, which only this response has. */
  readonly secret: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly previous_secret_expires_at: string | null;
}

/** A key with its secret, which only this response has. */
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

/** A created token. */
export interface CreatedToken {
  readonly id: string;
  /** The bearer token, which only this response has. */
  readonly token: string;
  readonly scopes: readonly string[];
  readonly resources: readonly TokenResource[];
  readonly expires_at: string | null;
  readonly created_at: string;
}

/** A user without a password, with a setup token. */
export interface CreatedUser {
  /** User name. */
  readonly id: string;
  /** Setup token, which only this response has, valid until setup_expires_at. */
  readonly setup_token: string;
  readonly setup_expires_at: string;
  readonly created_at: string;
}

/** A webhook endpoint with its secret. */
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
  /** Signing secret: 64 hex characters, whose ASCII bytes are the HMAC key. Only this response has it. */
  readonly secret: string;
}

/** The session of a call, with the token for its changes. */
export interface CurrentSession {
  readonly id: string;
  /** Value of the header Holdfast-Csrf for each call other than GET and HEAD. */
  readonly csrf_token: string;
  readonly expires_at: string;
  /** User name. */
  readonly user: string;
  /** The only organization of a session by a token's code; null for a session with all rights of the user. */
  readonly organization_id: string | null;
  /** Organizations of the user, at most 200; ListOrganizations has all. */
  readonly organizations: readonly {
    readonly id: string;
    readonly name: string;
    readonly role: Role | null;
  }[];
}

/** The outcome of a data snapshot. */
export interface DataSnapshot {
  /** State of the snapshot; "restored" when the data were restored from it. */
  readonly state: "taken" | "none" | "restored";
  /** Reason why there is no snapshot, or why the data were not restored although the image was rolled back. */
  readonly reason: string | null;
}

/** A database in a service's engine. */
export interface Database {
  readonly service_id: string;
  readonly name: string;
  readonly owner: string;
  readonly size_bytes: number;
  /** The operation that creates or drops it, while it is in progress. */
  readonly operation: Operation | null;
  readonly state: "ready" | "creating" | "closed" | "dropping" | "invalid";
}

/** A database that is being dropped. */
export interface DatabaseDeletion {
  readonly service_id: string;
  readonly name: string;
  /** The operation in progress; null if it is completed. */
  readonly operation: Operation | null;
}

/** The password of a database user in plain text. Do not log it. */
export interface DatabasePassword {
  readonly service_id: string;
  readonly username: string;
  readonly password: string;
  /** The operation that applies the password, while it is in progress. */
  readonly operation: Operation | null;
}

/** A user in a service's engine. */
export interface DatabaseUser {
  readonly service_id: string;
  readonly username: string;
  readonly role: UserRole;
  /** True if the platform created it and stores its password. */
  readonly managed: boolean;
  readonly created_at: string | null;
  /** The operation that changes it in the engine, while it is in progress. */
  readonly operation: Operation | null;
  /**
   * True if it may consume logical replication slots: attribute REPLICATION of PostgreSQL, which also permits to copy
   * all files of the service.
   */
  readonly replication: boolean;
}

/** A user that is being removed. */
export interface DatabaseUserDeletion {
  readonly service_id: string;
  readonly username: string;
  /** The operation in progress; null if it is completed. */
  readonly operation: Operation | null;
}

export interface DeadMessage {
  readonly id: number;
  readonly payload: unknown;
  readonly attempt_count: number;
  readonly enqueued_at: string;
  readonly died_at: string;
  /** Error of the last nack. */
  readonly last_error: string | null;
}

/** The channel of rules that name none. */
export interface DefaultChannel {
  /** Null when rules without a channel only emit events. */
  readonly channel_id: string | null;
}

/** An attempt to deliver an event, recorded at its end. */
export interface Delivery {
  readonly id: string;
  readonly webhook_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly attempt: number;
  /** HTTP status of the response; null without a response. */
  readonly response_status: number | null;
  /** Null for a successful delivery. */
  readonly error_message: string | null;
  /** Time of the delivery; null for a failed attempt. */
  readonly delivered_at: string | null;
  /** Start of the attempt. */
  readonly created_at: string;
  readonly duration_ms: number;
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
  /** Status of the project, current or at the end of the deployment. */
  readonly project_status: ProjectStatus;
  /** Resources, current or at the end of the deployment. */
  readonly resources: readonly {
    readonly logical_name: string;
    readonly kind: string;
    /** Id of the resource; null before its creation. */
    readonly resource_id: string | null;
    /** "Pending", "Provisioning", "Running", "Updating", "Failed", "Deleting" or "Deleted". */
    readonly status: string;
    readonly status_detail: string | null;
    /** False when the newest descriptor does not contain it. */
    readonly managed: boolean;
  }[];
  readonly progress_pct: number;
  /** Caller in the format of the audit log, such as "user:anna". */
  readonly actor: string;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
}

/** A test of a service's backups by restoring them. */
export interface Drill {
  readonly id: string;
  readonly service_id: string;
  /** "completed" and "failed" are final. */
  readonly status: "pending" | "running" | "completed" | "failed";
  readonly trigger: "schedule" | "request";
  /** The newest completed backup at the start of the drill, which is restored. */
  readonly backup_id: string;
  /** The point in time that is restored in addition; null if the engine supports only backups. */
  readonly target: string | null;
  /** Results so far. */
  readonly checks: readonly DrillCheck[];
  /** Error of a failed backup or drill; null otherwise. */
  readonly error: string | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /** Id of the drill's operation. */
  readonly operation_id: string;
}

export interface DrillCheck {
  /**
   * "restored": the engine runs with the restored data. "structure": tables and indexes are valid. "heartbeat": the
   * newest commit is at most 6 s before the target. "contents": the service and the backup have equally many keys.
   * "databases": lists databases that are invalid in the source too; it passes.
   */
  readonly name: string;
  /** The restore that was checked: of the "backup" or of the "target" time. */
  readonly of: string;
  readonly passed: boolean;
  readonly detail: string;
}

export interface EnabledAuth {
  readonly auth: AppAuth;
  readonly signing_keys: readonly AuthKey[];
}

/** An error: a code for programs and a message for users. */
export interface Fault {
  readonly code: string;
  readonly message: string;
}

/** Everything that an S3 client needs to connect, except a key. */
export interface FilesConnection {
  /** URL for S3 clients, with the bucket as the first part of the path, or in front of the host name. */
  readonly endpoint: string;
  /** Name of the only bucket, fixed at creation. */
  readonly bucket: string;
  readonly region: string;
  readonly host: string;
  /**
   * 443, or 9000 where machines cannot listen on ports below 1024 because the platform does not run as root. It does
   * not change with the platform's user later.
   */
  readonly port: number;
  /** URL for clients in the private network; bucket, port and certificate are the same. */
  readonly private_endpoint: string;
  /**
   * PEM of the certificate authority of the server certificate. URL for S3 clients that have the bucket in the host
   * name, which they derive from `endpoint` themselves. Unset for services that were created before files services had
   * this name.
   */
  readonly bucket_endpoint: string | null;
  readonly ca_certificate: string;
}

/** A pair of an access key id and a secret. */
export interface FilesKey {
  readonly id: string;
  readonly name: string;
  readonly access: FilesAccess;
  readonly access_key_id: string;
  /** Only in the response of the creation. */
  readonly secret_access_key: string | null;
  readonly created_at: string;
}

/** A firing alert. Notifications to channels have the same fields. */
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
  /** Value that fired the alert; null without data. */
  readonly current_value: number | null;
  readonly severity: AlertSeverity;
  /** "firing" or "no_data". */
  readonly state: AlertState;
  /** Time since which the condition is true, or since which there are no data. */
  readonly since: string;
  readonly fired_at: string;
}

/** The health of a service: the combined result and each check. */
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

/** Image, settings and machines of an app that the platform runs. */
export interface HostedApp {
  /** Image of the newest deployment, as it was requested, such as "shop:1". */
  readonly image_ref: string;
  /** Digest of the image; null until the registry has named it. */
  readonly image_digest: string | null;
  /** Port on which the program listens. */
  readonly port: number;
  /** Program and arguments in place of the image's; empty for the image's. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Names of the variables in secret_env. */
  readonly secret_env_names: readonly string[];
  /** Path that responds with a status from 200 to 399 once a release is ready; null: its port accepts connections. */
  readonly health_check_path: string | null;
  readonly start_timeout_seconds: number;
  readonly drain_seconds: number;
  readonly zone: string;
  readonly plan_name: string;
  readonly storage_size_gb: number;
  readonly storage_tier: string;
  readonly replicas: number;
  /** Number of the deployment that the app should run, from 1 on: the one that serves if the newest has failed. */
  readonly deployment_number: number;
  /** True while the newest deployment serves on all of the app's machines. */
  readonly serves_newest: boolean;
  /** Reason of the status Error, or of a deployment that failed. */
  readonly reason: string | null;
  /** The last lines that the release of a failed deployment printed. */
  readonly last_lines: readonly string[];
  /** URL of the app for its clients. */
  readonly url: string;
  /** Address that belongs to the app alone; null without one. */
  readonly floating_ip: string | null;
  /** Sign-in that clients need at its name, domains and floating IP. */
  readonly auth: HostedAppAuth;
  /**
   * Number of the deployment that serves; null before the first one. It is another one than deployment_number during a
   * deployment, and after one that failed.
   */
  readonly serving_deployment_number: number | null;
  /** Image of the deployment that serves; null before the first one. */
  readonly serving_image_ref: string | null;
  /** Number of the newest deployment if it has failed; null otherwise. */
  readonly failed_deployment_number: number | null;
  /** Image of the newest deployment if it has failed; null otherwise. */
  readonly failed_image_ref: string | null;
}

/** An index of documents in a service's engine. */
export interface Index {
  readonly service_id: string;
  readonly name: string;
  /**
   * green: each copy of each shard has a node; yellow: a copy has none; red: a shard has none, so documents are
   * missing. Null for a closed index.
   */
  readonly health: string | null;
  /** Documents, nested ones included, without copies. */
  readonly documents: number;
  /** Bytes of all copies on the disks of the nodes. */
  readonly size_bytes: number;
  readonly shards: number;
  /** Copies of each shard beside the first one. */
  readonly replicas: number;
}

export interface InferenceCapabilities {
  readonly chat: boolean;
  readonly embeddings: boolean;
}

/** The circuit breaker and the cost of the current month (UTC). */
export interface InferenceCircuit {
  /** True while calls are refused: until the limit is raised with reset_circuit, or the month ends. */
  readonly open: boolean;
  readonly opened_at: string | null;
  readonly spent_cents: number;
  /** Cost reserved by processes of the proxy for current and coming calls. */
  readonly reserved_cents: number;
  readonly period_start: string;
  /** Maximum unreported cost of processes of the proxy that were lost with their directories. */
  readonly unaccounted_cents: number;
}

/** A key of an application for the proxy, without its secret. */
export interface InferenceKey {
  readonly id: string;
  readonly name: string;
  readonly status: InferenceKeyStatus;
  /** Maximum number of input and output tokens in a month (UTC); null for no limit. */
  readonly monthly_token_limit: number | null;
  /** Maximum number of requests in 60 s; null for no limit. */
  readonly rate_limit_rpm: number | null;
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** A configured model provider. */
export interface InferenceProvider {
  /** Prefix of its models, such as "provider_a". */
  readonly provider: string;
  readonly enabled: boolean;
  /** Base URL of its API; null for the URL of the catalog. */
  readonly base_url: string | null;
  /** True if the organization attests that base_url is served from the EU. */
  readonly eu_endpoint: boolean;
  readonly has_api_key: boolean;
  readonly capabilities: InferenceCapabilities;
  /** True if calls stay in the EU, so that they are allowed with eu_only. */
  readonly eu_route: boolean;
  /** PEM of the certificate authorities to trust instead of the public ones. */
  readonly ca_certificate: string | null;
  readonly updated_at: string;
}

/** Limits and rules of an organization's inference. */
export interface InferenceSettings {
  readonly monthly_cost_limit_cents: number;
  readonly eu_only: boolean;
  /** Percentage of the limit at which inference.budget_warning is emitted. */
  readonly alert_pct: number;
  readonly circuit: InferenceCircuit;
}

export interface InferenceUsage {
  readonly period: InferenceUsagePeriod;
  /** Currency: "EUR". */
  readonly currency: string;
  readonly items: readonly InferenceUsageItem[];
  readonly total: InferenceUsageTotal;
}

export interface InferenceUsageItem {
  /** Model with the provider's prefix; null if grouped by key. */
  readonly model: string | null;
  /** Null when grouped by model. */
  readonly key_id: string | null;
  /** Name of the key; null if grouped by model, and for a deleted key. */
  readonly name: string | null;
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cost_cents: number;
  /** Requests for which the provider returned no usable usage, so that the proxy counted the tokens. */
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

/** The result of the last drill of a service's backups. */
export interface LastDrill {
  readonly id: string;
  readonly passed: boolean;
  readonly finished_at: string;
  /** Error of a failed drill; null otherwise. */
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

/** Pending updates of a service and the times of their application. */
export interface Maintenance {
  readonly service_id: string;
  readonly window: MaintenanceWindow;
  /** True for the default window, which is derived from the service's id. */
  readonly window_is_default: boolean;
  /** Next opening of the window, or its start when it is open. */
  readonly next_window_from: string;
  readonly next_window_until: string;
  /** Node image of the service; null if the host's engines are used. */
  readonly image: string | null;
  /** Full version of the engine, such as "17.11"; null while it is unknown. */
  readonly engine_version: string | null;
  readonly updates: readonly PendingUpdate[];
  /** The operation that is applying updates. */
  readonly operation: Operation | null;
  /**
   * Reason why automatic maintenance is paused; updates can still be applied by request. Null when it is not paused.
   */
  readonly held: string | null;
  /** Kernel of the service's virtual machines; null for machines without one of their own. */
  readonly guest_kernel: string | null;
}

/** A window of two hours per week in which updates may start automatically. */
export interface MaintenanceWindow {
  readonly day: Weekday;
  /** Hour in UTC at which the window opens. Omitted: 0, which is midnight. */
  readonly hour: number;
}

/** The parent of a resource. */
export interface ManagedBy {
  /** "project", "stack" or "pipeline". */
  readonly kind: string;
  readonly id: string;
}

/** A managed database service. */
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
  /** Host name for clients, fixed at creation. It resolves to the public address of the primary. */
  readonly hostname: string;
  readonly port: number;
  readonly nodes: readonly ServiceNode[];
  /** The operation in progress. */
  readonly operation: Operation | null;
  readonly health: Health;
  readonly tags: Readonly<Record<string, string>>;
  readonly deletion_protection: boolean;
  /** Hours after the creation at which it is deleted; null for no expiry. */
  readonly ttl_hours: number | null;
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  /** The reason of the status Error; null otherwise. */
  readonly error: Fault | null;
  /** The window in which updates may start automatically. */
  readonly maintenance_window: MaintenanceWindow;
  /** Summaries of pending updates; GetMaintenance has the details. */
  readonly pending_updates: readonly PendingUpdateSummary[];
  /**
   * Host name for clients in the private network. It resolves to the private address, or to the public one when there
   * is no other.
   */
  readonly private_hostname: string;
  /** Null for an engine without backups. */
  readonly backups: ServiceBackups | null;
  /** Time of the deletion of a deleted service that can be undeleted, and the end of that period; null otherwise. */
  readonly deleted_at: string | null;
  readonly undelete_until: string | null;
  /** Id of the primary, the node that accepts writes; null for an engine whose nodes elect their leader. */
  readonly primary_node_id: string | null;
  /** Number of primaries so far; it is raised by each switchover and failover. */
  readonly term: number;
  /** Null for a service with one node, and for an engine whose nodes elect their leader. */
  readonly replication: Replication | null;
  /** Null for an engine whose nodes do not elect their leader, and for a service with one node. */
  readonly quorum: Quorum | null;
  /** The source of the data; null for a service that was created empty. */
  readonly restored_from: RestoredFrom | null;
  /** Null for an engine without a pooler. */
  readonly pooler: {
    readonly enabled: boolean;
    /**
     * "transaction": a client has a session of the engine during a transaction. "session": a client has one while it is
     * connected. Null for an engine whose pooler has no modes.
     */
    readonly mode: string | null;
  } | null;
  readonly storage_autoscale: {
    readonly enabled: boolean;
    /** Maximum size; null while none is set. */
    readonly max_gb: number | null;
  };
  /** True if clients may connect without TLS in the private network; null for an engine without such a listener. */
  readonly private_listener: boolean | null;
  /** Layout of the databases of T-SQL clients, "single-db" or "multi-db"; null for other engines. */
  readonly layout_mode: string | null;
  /** Collation of the texts of T-SQL clients; null for other engines. */
  readonly server_collation: string | null;
  /**
   * The project, stack or pipeline that it belongs to. Only through it can the service be deleted, stopped, resized or
   * renamed.
   */
  readonly managed_by: ManagedBy | null;
}

/** A caller with its organization and scopes. */
export interface Me {
  /** "user", "api_key" or "token". */
  readonly kind: "user" | "api_key" | "token";
  readonly id: string;
  readonly name: string;
  /** The organization of this call; null for a user of several organizations who chose none. */
  readonly organization_id: string | null;
  /** Role of a user; null for keys and tokens. */
  readonly role: Role | null;
  readonly scopes: readonly string[];
  readonly expires_at: string | null;
  /** Organizations of the caller, at most 200; ListOrganizations has all. */
  readonly organizations: readonly {
    readonly id: string;
    readonly name: string;
    readonly role: Role | null;
  }[];
}

/** A member of an organization. */
export interface Member {
  /** User name. */
  readonly user_id: string;
  readonly role: Role;
  readonly created_at: string;
}

/** Metrics in the Prometheus text format 0.0.4. */
export interface MetricExposition {
  readonly text: string;
}

/** A sample of one node. */
export interface MetricSample {
  readonly time: string;
  readonly node_id: string;
  readonly role: NodeRole;
  /** Values of the requested metrics by name; metrics without a value are left out. */
  readonly values: Readonly<Record<string, number>>;
}

export interface MetricSeries {
  readonly metric: string;
  readonly unit: string;
  readonly node_id: string;
  readonly role: NodeRole;
  /**
   * Points [unix_seconds, average, minimum, maximum] of intervals with samples, oldest first. unix_seconds is the start
   * of the interval, a multiple of the resolution. The last interval may be incomplete.
   */
  readonly points: readonly MetricPoint[];
}

export interface Metrics {
  /** The requested period; null with `start`. */
  readonly period: string | null;
  readonly resolution: "1m" | "5m" | "1h";
  /** One series per metric and node, in the order of the request. */
  readonly series: readonly MetricSeries[];
  /** Requested metrics that a node does not have. */
  readonly absent: readonly {
    readonly metric: string;
    readonly node_id: string;
    /** Reason why there are no samples. */
    readonly reason: string;
  }[];
}

export interface MetricsExport {
  readonly id: string;
  /** Null for all current and future services of the organization. */
  readonly service_id: string | null;
  readonly name: string;
  readonly destination_type: DestinationType;
  readonly data_type: ExportDataType;
  readonly export_interval_seconds: number;
  /** Configuration of the destination type, as in docs/how-to/exports.md; secrets are ********. */
  readonly configuration: Readonly<Record<string, unknown>>;
  readonly is_enabled: boolean;
  /** Number of consecutive failed exports. */
  readonly consecutive_failures: number;
  /** Error of the last export; null if it was successful. */
  readonly last_export_error: string | null;
  /** Time of the last successful export. */
  readonly last_export_at: string | null;
  /** Time of the last export, successful or not. */
  readonly last_attempt_at: string | null;
  /** Age of the oldest unsent data in seconds; 0 when there are none. */
  readonly backlog_seconds: number;
  readonly exported: {
    readonly samples: number;
    readonly log_entries: number;
  };
  readonly dropped: {
    /** Items that are too old for the destination. */
    readonly too_old: number;
    /** Items that the destination refused individually. */
    readonly refused: number;
    /** Samples that were deleted from the history before they were sent. */
    readonly gone: number;
    /** Segments of engine logs that were rotated before they were sent. */
    readonly gone_log_segments: number;
  };
  /** Reason why the platform disabled it; null if it did not. */
  readonly disabled_reason: string | null;
  /** Deviations from the request, such as a part of data_type that the destination does not support. */
  readonly warnings: readonly string[];
  readonly created_at: string;
  readonly updated_at: string;
}

export interface MetricsExportPage {
  readonly integrations: readonly MetricsExport[];
  /** Number of all matching integrations. */
  readonly total: number;
  readonly limit: number;
  readonly offset: number;
}

export interface MetricsExportTest {
  readonly success: boolean;
  /** Null on success. */
  readonly error: string | null;
}

/** A change that takes time. */
export interface Operation {
  readonly id: string;
  /** Id of the service or app. */
  readonly service_id: string;
  /**
   * Type. For the service: "create", "start", "stop", "restart", "configure", "maintenance", "upgrade", "add_node",
   * "remove_node", "move_node", "failover", "resize", "expand" or "delete". For its engine: "create_user",
   * "update_user", "reset_password", "delete_user", "create_database" or "delete_database". For its backups: "backup",
   * "verify_backup" or "drill". For the app: "deploy" or "scale".
   */
  readonly type: string;
  readonly status: OperationStatus;
  /**
   * Current step, such as "SetupServer"; "WaitForHost <name>" while the host of the machine is unreachable. Members
   * that elect their leader also have "WaitForMajority", while no majority is available, and "WaitForMember", while
   * every other member is required.
   */
  readonly step: string | null;
  readonly progress_pct: number;
  readonly created_at: string;
  readonly started_at: string | null;
  /**
   * Time after which it is considered stuck; null while it waits for an unreachable host, and for up to an hour after a
   * jump of the platform's clock.
   */
  readonly deadline: string | null;
  readonly finished_at: string | null;
  readonly error: Fault | null;
  /** The data snapshot before maintenance that changes the image; null for other operations. */
  readonly snapshot: DataSnapshot | null;
  /** Problems that it found and left unchanged, such as invalid databases, as readable sentences. */
  readonly warnings: readonly string[];
}

/** An organization: the tenant that owns services, keys and memberships. */
export interface Organization {
  readonly id: string;
  readonly name: string;
  /** Some of the quotas; quotas has all. */
  readonly quota: OrganizationFigures;
  /** Usage of the same ones. */
  readonly usage: OrganizationFigures;
  readonly created_at: string;
  readonly updated_at: string;
  /** Every quota by its name, as errors name it in quota. */
  readonly quotas: Readonly<Record<string, QuotaFigures>>;
}

/** Quotas or usage of an organization. */
export interface OrganizationFigures {
  readonly services: number;
  readonly members: number;
  readonly api_keys: number;
  readonly tokens: number;
  readonly webhooks: number;
  /** Storage of all services in GB. */
  readonly storage_gb: number;
  /** Users that the organization created. */
  readonly users: number;
  readonly projects: number;
  readonly stacks: number;
  readonly pipelines: number;
}

/** A parameter of an engine. Values are strings in the engine's format, such as "8MB". */
export interface ParameterState {
  readonly value: string;
  /** The default of this service, which can depend on the plan and on the number of nodes. */
  readonly default: string;
  readonly status: ParameterStatus;
  /** The cause of a rejected value. */
  readonly reason: string | null;
  /** A guarantee that the value ends, as a readable sentence, such as the durability of acknowledged writes. */
  readonly warning: string | null;
}

/** A pending update of a service. */
export interface PendingUpdate {
  readonly id: string;
  readonly kind: UpdateKind;
  readonly title: string;
  readonly description: string;
  /** Current version of the engine, kernel or keeper, or else the image; null for a restart. */
  readonly from: string | null;
  readonly to: string | null;
  /** True if it starts at the end of its notice even outside of the window. */
  readonly urgent: boolean;
  readonly available_since: string;
  /** Time of its automatic start; null if it is applied by request only. */
  readonly apply_at: string | null;
  /** True if the engine is restarted, so that clients lose their connections. */
  readonly requires_restart: boolean;
  /** Reason why it cannot be applied now; null for none. */
  readonly blocked_reason: string | null;
  /** True if it changes the sort order of text in indexes; it is applied only with accept_text_order_change. */
  readonly changes_text_order: boolean;
  /**
   * Reason why no snapshot of the data can be taken before it, so that only the image can be rolled back; null if a
   * snapshot is possible or not needed.
   */
  readonly no_snapshot_reason: string | null;
}

/** A summary of a pending update. */
export interface PendingUpdateSummary {
  readonly id: string;
  readonly kind: UpdateKind;
  /** True if it starts at the end of its notice even outside of the window. */
  readonly urgent: boolean;
  /** Time of its automatic start; null if it is applied by request only. */
  readonly apply_at: string | null;
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
  /** Names of the services. */
  readonly services: readonly string[];
  readonly members: readonly {
    readonly role: string;
    readonly database_type: string;
    /** Id of the service; null before its creation. */
    readonly service_id: string | null;
    readonly status: string;
    readonly status_detail: string | null;
    readonly healthy: boolean;
  }[];
  /** Connections of running services. */
  readonly connections: readonly {
    readonly role: string;
    readonly connections: {
      readonly bootstrap_servers: string | null;
      readonly security_protocol: string | null;
      readonly sasl_mechanism: string | null;
      /** URI with the password, for callers with services:secrets; null for others. */
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
  /** Reason why it is unavailable; null if it is available. */
  readonly unavailable_reason: string | null;
  readonly services: readonly {
    readonly role: string;
    readonly database_type: string;
    readonly version: string | null;
    readonly default_plan: string;
    readonly storage_gb: number;
    readonly extensions: readonly string[];
  }[];
  /** Estimated monthly cost; null if one of its engines is unavailable. */
  readonly estimated_monthly_cost: number | null;
  readonly currency: string;
}

/** A difference at one path. Values of env are left out. */
export interface PlanChange {
  /** Path, such as "plan_name" or "env.KEY". */
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

export interface PlanEntry {
  readonly logical_name: string;
  readonly kind: string;
  readonly action: PlanAction;
  readonly changes: readonly PlanChange[];
  /** Differences between descriptor and resource that are recorded but not applied. */
  readonly pending_changes: readonly PlanChange[];
  /** Reason why nothing is changed, or `blocked: ...` for a resource that cannot be created; null otherwise. */
  readonly reason: string | null;
  /** Paths at which the resource differs from its recorded state. */
  readonly drift: readonly string[];
  readonly monthly_cost: number;
}

export interface Project {
  readonly id: string;
  readonly name: string;
  readonly status: ProjectStatus;
  readonly status_detail: string | null;
  /** Health of the resources: "healthy", "degraded" or "unknown". */
  readonly health: string;
  readonly last_deployment_id: string;
  readonly resources: readonly {
    readonly logical_name: string;
    readonly kind: string;
    /** Id of the resource; null before its creation. */
    readonly resource_id: string | null;
    /** "Pending", "Provisioning", "Running", "Updating", "Failed", "Deleting" or "Deleted". */
    readonly status: string;
    readonly status_detail: string | null;
    /** False when the newest descriptor does not contain it. */
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
    /** Differences: `before` is the value of the descriptor, `after` the actual one. */
    readonly changes: readonly PlanChange[];
  }[];
}

export interface ProjectPlan {
  readonly plan: readonly PlanEntry[];
  /** Digest of the plan. A deployment with it is refused when the plan has changed. */
  readonly plan_digest: string;
  /** Monthly cost after the deployment, in the currency of the catalog. */
  readonly monthly_cost: number;
  /** Difference to the current monthly cost. */
  readonly cost_delta: number;
  readonly currency: string;
  readonly warnings: readonly string[];
}

/** The result of a statement. */
export interface QueryResult {
  readonly columns: readonly string[];
  /** One list per row. Numbers that fit a JSON number, booleans and null are JSON values; all others are strings. */
  readonly rows: readonly (readonly (string | number | boolean | null)[])[];
  readonly row_count: number;
  readonly execution_ms: number;
  /** True if the result was cut at 1,000 rows or 8 MiB. */
  readonly truncated: boolean;
}

/** Statistics of one query in one database. */
export interface QueryStatistic {
  /** Text of the query with placeholders instead of literals, or a remark when they cannot be removed. */
  readonly query: string;
  readonly calls: number;
  /** Execution time in milliseconds: total_time of all executions, mean_time on average. */
  readonly total_time: number;
  readonly mean_time: number;
  /** Number of rows that all executions returned or affected. */
  readonly rows: number;
  /** Share of blocks that were found in memory, 0 to 1; null if no blocks were read. */
  readonly cache_hit_ratio: number | null;
  /** Id of the query in the engine, the same for all executions. */
  readonly query_id: string;
  readonly database: string;
}

export interface QueryStatistics {
  readonly queries: readonly QueryStatistic[];
  /** Number of different queries in the statistics. */
  readonly total_count: number;
  readonly collected_at: string;
  readonly database_type: string;
  /** Start of the statistics: the last reset, or the last failover. */
  readonly since: string;
}

/** A statistics task; members of the result are null until it is completed. */
export interface QueryStatisticsTask {
  readonly task_id: string;
  readonly status: TaskStatus;
  /** Error of a failed task. */
  readonly error: Fault | null;
  readonly queries: readonly QueryStatistic[];
  /** Number of statements. Null until the task is completed, as are all following members. */
  readonly total_count: number | null;
  readonly collected_at: string | null;
  readonly database_type: string | null;
  readonly since: string | null;
}

/** A queue in a PostgreSQL service. */
export interface Queue {
  readonly id: string;
  readonly service_id: string;
  readonly name: string;
  readonly database_name: string;
  /** Default visibility timeout of claims. */
  readonly visibility_timeout_seconds: number;
  /** Number of attempts after which a message is dead. */
  readonly max_attempts: number;
  /** True to store dead messages for 14 days, false to delete them. */
  readonly dlq_enabled: boolean;
  /** Status; only an Active queue accepts and delivers messages. */
  readonly status: QueueStatus;
  readonly created_at: string;
  readonly updated_at: string;
  /** Reason of the status Failed; null otherwise. */
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
  /** Error of the last nack. */
  readonly last_error: string | null;
}

/** The result of a task (`task_id` to `error`), or a page of messages (`messages` and `next_cursor`). */
export interface QueueMessages {
  readonly task_id: string | null;
  readonly status: TaskStatus | null;
  /** Result of a completed task. */
  readonly result: unknown;
  /** Error of a failed task. */
  readonly error: Fault | null;
  readonly messages: readonly QueueMessage[];
  readonly next_cursor: string | null;
}

/** Id of a task, whose result can be fetched for 24 hours. */
export interface QueueTask {
  readonly task_id: string;
}

/** Quorum of nodes that elect their leader. */
export interface Quorum {
  /** True if a majority of the nodes agrees on a leader. The check "quorum" of the health has the reason if not. */
  readonly healthy: boolean;
  /** Number of nodes with a vote. */
  readonly members: number;
  /** Number of nodes that must run for the service to take writes. */
  readonly majority: number;
}

/** The limit of one quota, and the amount that counts toward it. */
export interface QuotaFigures {
  /** Limit of the organization: the value that an operator set, or the default. */
  readonly limit: number;
  readonly used: number;
}

/** Receipts of changed messages, and of messages whose claims had expired. */
export interface Receipts {
  /** Receipts of changed messages. */
  readonly done: readonly string[];
  /** Receipts of messages whose claims had expired. */
  readonly lost: readonly string[];
}

/** Replication of a service. */
export interface Replication {
  /** Replication mode, which determines what a commit waits for: "async", "sync" or "sync_strict". */
  readonly mode: string;
  /** True if all replicas are connected to the primary, and commits wait for one if the mode requires it. */
  readonly healthy: boolean;
  /** Names of the failover candidates. In the modes "sync" and "sync_strict", at least one of them has each commit. */
  readonly standby_names: readonly string[];
}

/** The replication status of a node. */
export interface ReplicationStatus {
  readonly node_id: string;
  readonly role: NodeRole;
  /** Bytes of the primary's log that the node has not replayed; null if unknown. */
  readonly lag_bytes: number | null;
  /** Age of the oldest commit that the node lacks; 0 if it lacks none, null if unknown. */
  readonly lag_seconds: number | null;
  readonly connected: boolean;
  /** Null for the primary. */
  readonly sync_state: SyncState | null;
  /**
   * Position in the log in the engine's notation, such as "0/3000148": replayed by a replica, written by the primary.
   */
  readonly position: string | null;
  readonly timeline: number | null;
  /** Time of the last connection or disconnection. */
  readonly since: string | null;
  readonly measured_at: string;
}

/** The source of a service's data. */
export interface RestoredFrom {
  /** "restore", "fork" or "undelete". */
  readonly kind: string;
  /** Id of the service of the backup. */
  readonly service_id: string;
  /** The restored backup, from which the log was replayed for a restore to a point in time. */
  readonly backup_id: string;
  /** The point in time up to which the log was replayed; null for the data of the backup. */
  readonly restore_point: string | null;
  /**
   * Time of the restored data: the restore point, or the time of the backup. Null for an undelete, and for a service
   * that a release before this field restored.
   */
  readonly restores_to: string | null;
}

export interface RotatedAuthKey {
  readonly signing_key: AuthKey;
}

/** A new signing secret. */
export interface RotatedSecret {
  /** Signing secret: 64 hex characters. Only this response has it. */
  readonly secret: string;
  /** Time until which the old secret signs; null if it does not sign any more. */
  readonly previous_valid_until: string | null;
}

export interface RunningQueries {
  /** At most 200 sessions. */
  readonly queries: readonly RunningQuery[];
  /** True if there are more sessions. */
  readonly truncated: boolean;
}

/** A session that runs a query or has an open transaction. */
export interface RunningQuery {
  /** Id of the session; a later session with the same pid has another id. */
  readonly query_run_id: string;
  readonly pid: number;
  readonly username: string;
  readonly database: string;
  /** State in the engine, such as "active" or "idle in transaction". */
  readonly state: string;
  /** Wait event, such as "Lock: relation"; null while it does not wait. */
  readonly wait: string | null;
  /** Pids of sessions that block it, in this list or of the platform. */
  readonly blocked_by: readonly number[];
  /** Seconds since the start of its query. */
  readonly age_seconds: number;
  /** Seconds since the start of its transaction; null without one. */
  readonly transaction_seconds: number | null;
  /** IP address of the client. */
  readonly client: string | null;
  /** Text of the query, up to 10,000 characters; for an idle session the text of its last query. */
  readonly query: string;
}

/** The JSON Schema of descriptors. */
export interface SchemaText {
  readonly text: string;
}

/** The assessment of a script. */
export interface ScriptAssessment {
  /** Number of statements that are not inside of others. */
  readonly statements: number;
  /** Features by the lines that use them. A supported feature is listed once, with its first line. */
  readonly findings: readonly ScriptFinding[];
  /** True if the script has more findings. */
  readonly truncated: boolean;
}

/** A feature that a script uses. */
export interface ScriptFinding {
  /** Line of the script, from 1. */
  readonly line: number;
  /** Name of the feature in the documentation's table of features. */
  readonly feature: string;
  /** "supported"; "limited": with the differences of the advice; "unsupported": an error. */
  readonly verdict: string;
  /** Limits of the feature, or what to use in its place; the error of the statement, if it has one. Empty for none. */
  readonly advice: string;
}

/** A summary of a service's backups and its restore window. */
export interface ServiceBackups {
  /** The restore window; null while nothing can be restored. */
  readonly restorable: TimeRange | null;
  /** Ranges in the window that cannot be restored, the newest 20. */
  readonly gaps: readonly TimeRange[];
  readonly last_completed_at: string | null;
  /** Time of the next automatic backup; null if there will be none. */
  readonly next_at: string | null;
  /** Version of the key that encrypts the next backup; null before the first. */
  readonly key_version: number | null;
  /** The last finished drill; null before the first. */
  readonly last_drill: LastDrill | null;
}

/** A node: one machine of a service. */
export interface ServiceNode {
  readonly id: string;
  readonly role: NodeRole;
  readonly status: NodeStatus;
  readonly hostname: string;
  readonly zone: string;
  /** Host name that resolves to the private address. */
  readonly private_hostname: string;
  /** The operation that adds or removes it, while it is in progress. */
  readonly operation_id: string | null;
}

/** A session of a user in a browser. */
export interface Session {
  readonly id: string;
  readonly created_at: string;
  /** End of the session; it ends earlier after 12 hours without a call. */
  readonly expires_at: string;
  /** Time of the last call, at most six minutes old. */
  readonly last_used_at: string | null;
  /** IP address of the last caller. */
  readonly last_used_from: string | null;
  /** IP address of the sign-in. */
  readonly created_from: string;
  /** Name that the browser sent; empty if it sent none. */
  readonly user_agent: string;
  /** True for the session of this call. */
  readonly current: boolean;
}

/** A one-time code for a sign-in in a browser. */
export interface SessionCode {
  /** The code, which only this response has. */
  readonly code: string;
  readonly expires_at: string;
}

export interface SignalledQuery {
  readonly query_run_id: string;
  readonly pid: number;
}

export interface Stack {
  readonly id: string;
  readonly name: string;
  readonly status: StackStatus;
  readonly status_detail: string | null;
  /** URL of its web console once it is Running; null without one. */
  readonly endpoint_url: string | null;
  readonly resources: readonly {
    readonly symbolic_name: string;
    readonly kind: string;
    readonly status: string;
    readonly status_detail: string | null;
    /** Id of the service; null before its creation. */
    readonly service_id: string | null;
  }[];
  readonly template_name: string;
  readonly template_version: string;
  readonly monthly_cost: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface StackMigration {
  /** Null in the response to an upgrade of a stack that is up to date. */
  readonly id: string | null;
  readonly stack_id: string;
  readonly from_version: string;
  readonly to_version: string;
  readonly status: MigrationStatus;
  readonly status_detail: string | null;
  readonly steps: readonly {
    readonly symbolic_name: string;
    readonly action: string;
    /** "Pending", "Applying", "Completed" or "Failed". */
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
    /** True if the cost depends on usage and this is its maximum. */
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
  /** Reason why it is unavailable; null if it is available. */
  readonly unavailable_reason: string | null;
  readonly resources: readonly {
    readonly symbolic_name: string;
    readonly kind: string;
    readonly depends_on: readonly string[];
  }[];
}

/** A request whose result is fetched later. */
export interface Task {
  readonly task_id: string;
  /** Type, such as "queue_enqueue". */
  readonly type: string;
  readonly status: TaskStatus;
  /** Result of a completed task, as documented at the method that returned the id. */
  readonly result: unknown;
  /** Error of a failed task. */
  readonly error: Fault | null;
  readonly created_at: string;
  readonly finished_at: string | null;
}

/** The progress of the current operation. */
export interface TaskSummary {
  readonly status: ServiceStatus;
  readonly current_task: string | null;
  readonly progress_pct: number;
  readonly operation_id: string | null;
}

/** A range of time. */
export interface TimeRange {
  readonly from: string;
  readonly to: string;
}

/** A bearer token, without the token itself. */
export interface Token {
  readonly id: string;
  readonly scopes: readonly string[];
  /** Objects that it is limited to; empty for all objects of the organization, or for none if it is limited. */
  readonly resources: readonly TokenResource[];
  readonly expires_at: string | null;
  readonly created_at: string;
  /**
   * Creator in the format of the audit log, such as "user:anna", or the hosted app whose programs have it, such as
   * "app:shop"; "installation" for the first one.
   */
  readonly created_by: string | null;
  /** Time of the last use, at most one minute old. */
  readonly last_used_at: string | null;
  /** IP address of the last caller. */
  readonly last_used_from: string | null;
  /** True: it may access its resources alone, also if there are none. */
  readonly is_limited: boolean;
}

/** An object that a token is limited to. */
export interface TokenResource {
  /** Kind of the object, such as "managed-service". */
  readonly kind: "managed-service";
  readonly id: string;
}

/** A topic in a service's engine. */
export interface Topic {
  readonly service_id: string;
  readonly name: string;
  readonly partitions: number;
  readonly replication_factor: number;
  /** Bytes of all replicas on the disks of the nodes. */
  readonly size_bytes: number;
  /** The topic's own settings by the engine's names; all others are the service's parameters. */
  readonly config: Readonly<Record<string, string>>;
  /** Partitions by number; empty in lists. */
  readonly partition_states: readonly TopicPartition[];
}

export interface TopicPartition {
  readonly partition: number;
  /** Number of the node that leads it; null without a leader. */
  readonly leader: number | null;
  /** Numbers of the nodes with a replica, and of those in sync. */
  readonly replicas: readonly number[];
  readonly in_sync: readonly number[];
  /** First offset, and the one of the next record. */
  readonly start_offset: number;
  readonly end_offset: number;
}

/** The translation of a question to SQL. */
export interface Translation {
  /** Statement for ExecuteQuery; empty if there is none. */
  readonly sql: string;
  readonly explanation: string;
  readonly database_type: string;
  /** Reason why there is no statement, or doubts of the model; null for none. */
  readonly warning: string | null;
}

/** Uses of an unsupported feature. */
export interface UnsupportedFeature {
  /** Name of the feature in the documentation's table of features. */
  readonly feature: string;
  /** Number of errors that refused it. */
  readonly count: number;
  readonly advice: string;
}

/** Unsupported features that clients used. */
export interface UnsupportedFeatures {
  readonly features: readonly UnsupportedFeature[];
  /** Start of the counts: that of the primary's front end. */
  readonly since: string;
}

/** An upgrade of a service's engine: its findings, and its operation. */
export interface Upgrade {
  readonly service_id: string;
  readonly from_version: string;
  readonly to_version: string;
  /** Findings, those that prevent the upgrade first. */
  readonly findings: readonly UpgradeFinding[];
  /** The operation of the upgrade; null for a check. */
  readonly operation: Operation | null;
}

/** A fact to know before an upgrade. */
export interface UpgradeFinding {
  /**
   * "not_ready", "no_image", "parameter_unknown", "no_snapshot", "no_backup", "replicas", "text_order", "downtime" or
   * "connections"; of PostgreSQL's data "no_room", "prepared_transactions", "replication_slots", "closed_databases",
   * "invalid_databases", "column_types", "not_null_constraints", "extensions" or "statistics_views".
   */
  readonly code: string;
  /** True if it prevents the upgrade. */
  readonly blocking: boolean;
  readonly message: string;
}

export interface UpgradePreview {
  readonly from_version: string;
  readonly to_version: string;
  readonly changes: readonly {
    readonly symbolic_name: string;
    readonly kind: string;
    readonly change: UpgradeChangeType;
    /** "redeploy_app", "scale_app" or "scale_service"; null for none. */
    readonly action: string | null;
    /** Changed members as a JSON object; values of env are left out. */
    readonly target_spec: unknown;
    readonly reason: string | null;
  }[];
  readonly current_monthly_cost: number;
  readonly new_monthly_cost: number;
  readonly cost_delta: number;
  readonly blocked: boolean;
  readonly blocked_reasons: readonly string[];
}

/** A webhook endpoint. */
export interface Webhook {
  readonly id: string;
  readonly url: string;
  /** Event types to send; null for all, an empty list for none. */
  readonly events: readonly string[] | null;
  readonly active: boolean;
  readonly retry_policy: RetryPolicy;
  /** Time at which the platform disabled the endpoint after 5 days of failures; null otherwise. */
  readonly disabled_at: string | null;
  /** A warning when deliveries use unencrypted HTTP; null otherwise. */
  readonly warning: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

// Printed from the protos by `npm run generate`. Times are RFC 3339 strings.
// An absent key changes or filters nothing.
import type {
  AlertCondition,
  AlertNoData,
  AlertSeverity,
  AuthClientType,
  AuthSignUp,
  BackupStatus,
  BackupType,
  ChannelType,
  DestinationType,
  ExportDataType,
  FilesAccess,
  HostedAppAuth,
  InferenceKeyStatus,
  IssuerDomainChoice,
  LogLevel,
  MaintenanceWindow,
  NodeRole,
  RetryPolicy,
  ServiceStatus,
  TokenResource,
  UserRole,
} from "./responses.ts";

/** Period up to now. Omitted: 1h, unless start is set. */
export type MetricPeriod = "15m" | "1h" | "6h" | "24h" | "7d";

/**
 * Interval of one point. 1m is allowed for up to 24 hours and 5m for up to 7 days, both within the last 8 days; 1h
 * always. Omitted: the finest that is allowed.
 */
export type MetricResolution = "1m" | "5m" | "1h";

/** Values by parameter name; null resets a parameter. */
export type ParameterChange = Readonly<Record<string, string | null>>;

/** Sort order, descending. Omitted: total_time. */
export type QueryOrder = "total_time" | "calls" | "mean_time" | "rows";

export type TopicSettings = Readonly<Record<string, string | null>>;

export type TopicSettingsChange = Readonly<Record<string, string | null>>;

export interface AckedMessage {
  readonly receipt: string;
}

/** Changes the fields that are present. */
export interface AlertRuleChange {
  readonly name?: string | undefined;
  readonly condition?: AlertCondition | undefined;
  readonly threshold?: number | undefined;
  readonly severity?: AlertSeverity | undefined;
  readonly duration_minutes?: number | undefined;
  /** Null: the default channel. */
  readonly notification_channel_id?: string | null | undefined;
  readonly no_data?: AlertNoData | undefined;
  readonly paused?: boolean | undefined;
}

export interface AppChange {
  readonly home_url?: string | null | undefined;
  /** Image in the platform's registry, such as "shop:1"; the organization's id may precede it. */
  readonly image_ref?: string | undefined;
  /** Port on which the program listens. */
  readonly port?: number | undefined;
  /** Program and arguments in place of the image's. */
  readonly command?: readonly string[] | undefined;
  /** All variables of the program, 32 KiB at most: others end. To change some of them: set_env. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /**
   * All variables of the program whose values are never returned, 128 KiB at most: others end, and nothing returns
   * their values. To change some of them: set_secret_env.
   */
  readonly secret_env?: Readonly<Record<string, string>> | undefined;
  /**
   * Path that responds with a status from 200 to 399 once a release is ready. Omitted: its port accepts connections.
   */
  readonly health_check_path?: string | null | undefined;
  /** Number of machines. It cannot change together with fields of a deployment. */
  readonly replicas?: number | undefined;
  /** Sign-in that clients need to reach the app. The form gets another password each time that it is turned on. */
  readonly auth?: HostedAppAuth | undefined;
  /** Time in which a release becomes ready. */
  readonly start_timeout_seconds?: number | undefined;
  /**
   * Time for requests in progress after another release serves. A release has the time of the deployment that started
   * it.
   */
  readonly drain_seconds?: number | undefined;
  /** Variables of the program to add or change; the others remain. */
  readonly set_env?: Readonly<Record<string, string>> | undefined;
  /** Names of variables in env to remove. */
  readonly unset_env?: readonly string[] | undefined;
  /** Secret variables of the program to add or change; the others remain. An empty text is a value. */
  readonly set_secret_env?: Readonly<Record<string, string>> | undefined;
  /** Names of variables in secret_env to remove. */
  readonly unset_secret_env?: readonly string[] | undefined;
}

/** A filter of the audit log. All fields that are set must match. */
export interface AuditFilter {
  readonly actor?: string | undefined;
  /** Id of an object. */
  readonly object?: string | undefined;
  readonly action?: string | undefined;
  /** Earliest time, inclusive. */
  readonly since?: string | undefined;
  /** Latest time, exclusive. */
  readonly until?: string | undefined;
}

export interface AuthChange {
  readonly smtp?: NewAuthSmtp | undefined;
  readonly theme?: NewAuthTheme | undefined;
  readonly sign_up?: AuthSignUp | undefined;
  readonly mails_per_hour?: number | undefined;
}

export interface AuthClientChange {
  readonly name?: string | undefined;
  readonly redirect_uris?: readonly string[] | undefined;
  readonly post_logout_redirect_uris?: readonly string[] | undefined;
  readonly allowed_origins?: readonly string[] | undefined;
  readonly require_pkce?: boolean | undefined;
}

/** An identity provider, with the values of the app's registration there. */
export interface AuthIdpProviderChange {
  readonly client_id: string;
  /** Required for a new provider, and when issuer_url, client_id or ca_certificate change. Omitted: the stored one. */
  readonly client_secret?: string | undefined;
  /** Issuer URL of an `oidc` provider, https. Not needed for google. */
  readonly issuer_url?: string | undefined;
  /** Omitted: `openid email`, which are always included. */
  readonly scopes?: readonly string[] | undefined;
  /** PEM of the certificate authority, for a provider without a publicly trusted certificate. */
  readonly ca_certificate?: string | undefined;
}

export interface AuthUserFilter {
  readonly email?: string | undefined;
}

/** A filter of backups. All fields that are set must match. */
export interface BackupFilter {
  readonly type?: BackupType | undefined;
  /** Status, in lower case or capitalized: "completed" or "Completed". */
  readonly status?: BackupStatus | Capitalize<BackupStatus> | undefined;
}

/** Changes the fields that are present. */
export interface BackupSettingsChange {
  /** Hour in UTC. */
  readonly hour?: number | undefined;
  readonly minute?: number | undefined;
  readonly retention_days?: number | undefined;
}

/** Changes the fields that are present. */
export interface ChannelChange {
  readonly name?: string | undefined;
  readonly config?: NewChannelConfig | undefined;
}

export interface ClaimOptions {
  /** Omitted: 1. */
  readonly max?: number | undefined;
  /** Visibility timeout. Omitted: the timeout of the queue. */
  readonly visibility_timeout_seconds?: number | undefined;
  /** Maximum time to wait for the first message. */
  readonly wait_seconds?: number | undefined;
}

export interface ConsumerGroupReset {
  readonly topic: string;
  /** "earliest", "latest", or a time in RFC 3339: the first record of that time or later. */
  readonly to: string;
}

/** A change of a user in a service's engine. */
export interface DatabaseUserChange {
  /** True for a consumer of logical replication slots, such as Debezium. PostgreSQL only. Omitted: unchanged. */
  readonly replication?: boolean | undefined;
}

export interface ExtendedMessage {
  readonly receipt: string;
  /** Visibility timeout from now on. Omitted: the timeout of the queue. */
  readonly visibility_timeout_seconds?: number | undefined;
}

/** Changes the fields that are present. */
export interface FilesServiceChange {
  readonly name?: string | undefined;
  readonly allowed_cidrs?: readonly string[] | undefined;
  /** Null removes the expiry. */
  readonly ttl_hours?: number | null | undefined;
  readonly deletion_protection?: boolean | undefined;
  /** Replaces all tags. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /** Null for the default window, which is derived from the service's id. */
  readonly maintenance_window?: MaintenanceWindow | null | undefined;
  /** A new plan. Plan and storage together are one operation. */
  readonly plan_name?: string | undefined;
  /** A new storage size. The current size changes nothing. */
  readonly storage_size_gb?: number | undefined;
  /** Enables, changes or disables automatic growth of the storage. */
  readonly storage_autoscale?: StorageAutoscaleChoice | undefined;
}

/** A filter of files services. All fields that are set must match. */
export interface FilesServiceFilter {
  readonly name?: string | undefined;
  readonly status?: ServiceStatus | undefined;
  /** A tag in the format "key:value". */
  readonly tag?: string | undefined;
  /** True to list deleted services that can be undeleted, instead of existing ones. */
  readonly deleted?: boolean | undefined;
}

/** Changes the fields that are present. */
export interface InferenceKeyChange {
  readonly name?: string | undefined;
  readonly status?: InferenceKeyStatus | undefined;
  readonly monthly_token_limit?: number | null | undefined;
  readonly rate_limit_rpm?: number | null | undefined;
  readonly expires_at?: string | null | undefined;
}

export interface InferenceProviderChange {
  readonly provider: string;
  /** Required for a new provider, and when base_url or ca_certificate change. Omitted: the stored one. */
  readonly api_key?: string | undefined;
  /** Omitted for a new provider: true. */
  readonly enabled?: boolean | undefined;
  /** An absolute https URL that resolves to public addresses. */
  readonly base_url?: string | undefined;
  readonly eu_endpoint?: boolean | undefined;
  /** PEM. */
  readonly ca_certificate?: string | undefined;
}

export interface InferenceSettingsChange {
  readonly monthly_cost_limit_cents?: number | undefined;
  readonly eu_only?: boolean | undefined;
  /** Closes an open circuit; 409 while the cost of the month is not below the limit. */
  readonly reset_circuit?: boolean | undefined;
  readonly alert_pct?: number | undefined;
}

export interface InferenceUsageQuery {
  /** "model" or "key". */
  readonly group_by: string;
  /** Start, rounded down to an hour. Omitted: the start of the current month (UTC). */
  readonly from?: string | undefined;
  /** End, exclusive. Omitted: now. */
  readonly to?: string | undefined;
}

/** A filter of log lines. All fields that are set must match. */
export interface LogFilter {
  readonly since?: string | undefined;
  /** Minimum level. */
  readonly level?: LogLevel | undefined;
  /** True for the newest lines that match, oldest first, as the first page; a cursor replaces it. */
  readonly newest?: boolean | undefined;
  /** Id of a node; the primary by default. */
  readonly node_id?: string | undefined;
  /** Text that a line must contain, in upper or lower case. */
  readonly contains?: string | undefined;
  /**
   * A separate log in place of the engine's log. "slow": statements that took longer than the parameter
   * long_query_time, with their values; only for mysql.
   */
  readonly component?: string | undefined;
}

export interface MessageQuery {
  readonly task_id?: string | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** Metrics and the period of a query. */
export interface MetricQuery {
  /** Names of metrics in the catalog; may be repeated. */
  readonly metric: readonly string[];
  /** Period up to now. Omitted: 1h, unless start is set. */
  readonly period?: MetricPeriod | undefined;
  /**
   * Interval of one point. 1m is allowed for up to 24 hours and 5m for up to 7 days, both within the last 8 days; 1h
   * always. Omitted: the finest that is allowed.
   */
  readonly resolution?: MetricResolution | undefined;
  /** Ids of nodes; may be repeated. Omitted: all nodes of the service. */
  readonly node_id?: readonly string[] | undefined;
  /** Start of the period, at most 400 days ago; instead of `period`. */
  readonly start?: string | undefined;
  /** End of the period, with `start`. Omitted: now. */
  readonly end?: string | undefined;
}

/** Changes the fields that are present. */
export interface MetricsExportChange {
  /** Null for all services of the organization. */
  readonly service_id?: string | null | undefined;
  readonly name?: string | undefined;
  readonly destination_type?: DestinationType | undefined;
  readonly data_type?: ExportDataType | undefined;
  /** 30 to 3600. */
  readonly export_interval_seconds?: number | undefined;
  readonly configuration?: Readonly<Record<string, unknown>> | undefined;
  /** Refused; use EnableMetricsExport and DisableMetricsExport. */
  readonly is_enabled?: boolean | undefined;
}

export interface NackedMessage {
  readonly receipt: string;
  /** Delay in seconds until it can be claimed again. */
  readonly delay_seconds?: number | undefined;
  /** Error text, of which 4 KiB are stored as last_error. */
  readonly error?: string | undefined;
  /** True to make no further attempt: the message is dead after the delay. */
  readonly discard?: boolean | undefined;
}

/** A rule to be created. */
export interface NewAlertRule {
  /** Omitted: metric, condition and threshold. */
  readonly name?: string | undefined;
  readonly metric: string;
  readonly condition: AlertCondition;
  readonly threshold: number;
  /** Omitted: warning. */
  readonly severity?: AlertSeverity | undefined;
  /** Omitted: 0, which fires at the first sample. */
  readonly duration_minutes?: number | undefined;
  readonly notification_channel_id?: string | null | undefined;
  /** Omitted: ignore. */
  readonly no_data?: AlertNoData | undefined;
  readonly paused?: boolean | undefined;
}

/** A key to be created. Scopes that the caller lacks are refused. */
export interface NewApiKey {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expires_at?: string | undefined;
}

/** An app to be created. */
export interface NewApp {
  /** Lower-case letters, digits and `-`. */
  readonly name: string;
  /** https, or http on loopback. */
  readonly home_url?: string | undefined;
  /** Image in the platform's registry, such as "shop:1"; the organization's id may precede it. */
  readonly image_ref?: string | undefined;
  /** Port on which the program listens. Omitted: 8080. */
  readonly port?: number | undefined;
  /** Program and arguments in place of the image's. */
  readonly command?: readonly string[] | undefined;
  /** Variables of the program: 32 KiB at most. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Variables of the program whose values are never returned: 128 KiB at most. */
  readonly secret_env?: Readonly<Record<string, string>> | undefined;
  /**
   * Path that responds with a status from 200 to 399 once a release is ready. Omitted: its port accepts connections.
   */
  readonly health_check_path?: string | undefined;
  /** Time in which a release becomes ready. Omitted: 60. */
  readonly start_timeout_seconds?: number | undefined;
  /** Time for requests in progress after another release serves. Omitted: 30. */
  readonly drain_seconds?: number | undefined;
  /** Plan of each machine. Omitted: the first one of the catalog. */
  readonly plan_name?: string | undefined;
  /** Storage of each machine in GB, for images. Omitted: 10. */
  readonly storage_size_gb?: number | undefined;
  readonly storage_tier?: string | undefined;
  readonly zone?: string | undefined;
  /** Number of machines. Omitted: 1. */
  readonly replicas?: number | undefined;
  /** Sign-in that clients need to reach the app. Omitted: none. */
  readonly auth?: HostedAppAuth | undefined;
}

/** A domain to be verified. */
export interface NewAppDomain {
  /** Domain name, such as login.shop.example. */
  readonly name: string;
}

/** A database or a files service to be attached. */
export interface NewAttachment {
  /** Id of the service, or of another hosted app, which does not listen on port 80. */
  readonly service_id: string;
  /** Omitted: the service's default database. A files service has none. */
  readonly database_name?: string | undefined;
  /** Access of the key to a files service. Omitted: readwrite. */
  readonly access?: FilesAccess | undefined;
  /** Prefix of the variables of a hosted app. Omitted: the name of the service, such as ORDERS_DB for orders-db. */
  readonly prefix?: string | undefined;
}

export interface NewAuth {
  readonly attachment_id: string;
  /** Omitted: fallback. */
  readonly issuer_domain_choice?: IssuerDomainChoice | undefined;
  readonly smtp?: NewAuthSmtp | undefined;
  readonly theme?: NewAuthTheme | undefined;
  /** Redirect URIs of the first client. Omitted: `<home_url>/auth/callback`. */
  readonly redirect_uris?: readonly string[] | undefined;
  /** Verified domain of the app, with the domain type `custom`. Omitted: the only one. */
  readonly custom_domain?: string | undefined;
}

/** A client to be created. */
export interface NewAuthClient {
  readonly name: string;
  readonly type: AuthClientType;
  /**
   * At least one. Compared exactly, so `*` is refused: https, http on loopback with any port, or the private-use scheme
   * of a native app, as `com.example.shop:/callback` (RFC 8252 section 7.1).
   */
  readonly redirect_uris?: readonly string[] | undefined;
  /**
   * URIs to which `/logout` returns, as `redirect_uris`; on loopback the port is compared too. With any other URI the
   * user is signed out and stays on a page of the issuer.
   */
  readonly post_logout_redirect_uris?: readonly string[] | undefined;
  /** Origins whose scripts may call `/token`, `/userinfo` and `/revoke` (CORS), as `https://shop.example.com`. */
  readonly allowed_origins?: readonly string[] | undefined;
  /** Omitted: true. Public clients always need PKCE. */
  readonly require_pkce?: boolean | undefined;
}

/** A mail server. */
export interface NewAuthSmtp {
  readonly host: string;
  /** Port 25, 465, 587 or 2525. Port 465 uses TLS from the start, the others STARTTLS. */
  readonly port: number;
  /**
   * Omitted without authentication. It requires a password, unless the password of the same host, port, username and
   * ca_certificate is stored.
   */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly from_address: string;
  readonly from_name?: string | undefined;
  /** PEM of the certificate authority, for a server without a publicly trusted certificate. */
  readonly ca_certificate?: string | undefined;
}

/** Appearance of pages and mails. Omitted fields have the platform's defaults. */
export interface NewAuthTheme {
  /** Name of the app, at most 60 characters. */
  readonly display_name?: string | undefined;
  /** Color in the format #rrggbb. */
  readonly brand_color?: string | undefined;
  /** URL of the logo, https; only browsers fetch it. */
  readonly logo_url?: string | undefined;
}

/** A channel to be created. */
export interface NewChannel {
  readonly name: string;
  readonly type: ChannelType;
  readonly config: NewChannelConfig;
}

/** The target: `address` for e-mail, `url` for a webhook. */
export interface NewChannelConfig {
  /** E-mail address, for the type email. */
  readonly address?: string | undefined;
  /** URL of the endpoint, http:// or https://, for the type webhook. */
  readonly url?: string | undefined;
}

/** A user to be created; the platform generates its password. */
export interface NewDatabaseUser {
  readonly username: string;
  readonly role: UserRole;
  /**
   * True for a consumer of logical replication slots, such as Debezium. It may also copy all files of the service, with
   * any role. PostgreSQL only; false by default.
   */
  readonly replication?: boolean | undefined;
}

/** A key to be created. */
export interface NewFilesKey {
  /** Unique among the keys of the service. */
  readonly name: string;
  /** Omitted: readwrite. */
  readonly access?: FilesAccess | undefined;
}

/** A files service to be created. */
export interface NewFilesService {
  readonly name: string;
  readonly plan_name: string;
  /** Size in GB. */
  readonly storage_size_gb: number;
  readonly storage_tier?: string | undefined;
  readonly zone?: string | undefined;
  /** CIDR ranges that may connect. Omitted: the catalog's default. An empty list allows no client. */
  readonly allowed_cidrs?: readonly string[] | undefined;
  /** Hours after which the service is deleted. Omitted: no expiry. */
  readonly ttl_hours?: number | undefined;
  readonly deletion_protection?: boolean | undefined;
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /** Omitted: a window at night, which is derived from the service's id. */
  readonly maintenance_window?: MaintenanceWindow | undefined;
  /** Omitted: no automatic growth. */
  readonly storage_autoscale?: StorageAutoscaleChoice | undefined;
}

export interface NewInferenceKey {
  readonly name: string;
  readonly monthly_token_limit?: number | undefined;
  readonly rate_limit_rpm?: number | undefined;
  readonly expires_at?: string | undefined;
}

export interface NewMessage {
  /** A JSON object of at most 256 KiB, which is stored unchanged. */
  readonly payload: object;
  /** Delay in seconds until it can be claimed. */
  readonly delay_seconds?: number | undefined;
}

/** An integration to be created. */
export interface NewMetricsExport {
  /** Null or absent: all services of the organization. */
  readonly service_id?: string | null | undefined;
  readonly name: string;
  readonly destination_type: DestinationType;
  readonly data_type: ExportDataType;
  /** 30 to 3600. Omitted: 60. */
  readonly export_interval_seconds?: number | undefined;
  readonly configuration: Readonly<Record<string, unknown>>;
}

/** A node to be added. */
export interface NewNode {
  /** "replica"; other roles cannot be added. */
  readonly role: NodeRole;
  /** Omitted: the zone of the service. */
  readonly zone?: string | undefined;
  /** Number of nodes to add, all in the same zone; omitted: 1. */
  readonly count?: number | undefined;
}

export interface NewPipeline {
  readonly template_id: string;
  /** Name of the pipeline, and prefix of the names of its services. */
  readonly name: string;
  readonly zone: string;
  /** Plan of all services, instead of the plans of the template. */
  readonly plan_name?: string | undefined;
  /** Omitted: the organization of the caller. */
  readonly organization_id?: string | undefined;
}

/** A queue to be created. */
export interface NewQueue {
  /** Lower-case letters, digits, `-` and `_`. */
  readonly name: string;
  /** Omitted: the service's default database. */
  readonly database_name?: string | undefined;
  /** Omitted: 30. */
  readonly visibility_timeout_seconds?: number | undefined;
  /** Omitted: 5. */
  readonly max_attempts?: number | undefined;
  /** Omitted: true. */
  readonly dlq_enabled?: boolean | undefined;
}

/** A service to be created. */
export interface NewService {
  readonly name: string;
  /** An engine of the catalog. `postgres` is another name of `postgresql`, which the response has. */
  readonly database_type: string;
  /** Omitted: the catalog's default for the engine. */
  readonly version?: string | undefined;
  readonly plan_name: string;
  /** Size in GB. */
  readonly storage_size_gb: number;
  readonly storage_tier?: string | undefined;
  readonly zone?: string | undefined;
  /** CIDR ranges that may connect. Omitted: the catalog's default. An empty list allows no client. */
  readonly allowed_cidrs?: readonly string[] | undefined;
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  /** Hours after which the service is deleted. Omitted: no expiry. */
  readonly ttl_hours?: number | undefined;
  readonly deletion_protection?: boolean | undefined;
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /** Omitted: a window at night, which is derived from the service's id. */
  readonly maintenance_window?: MaintenanceWindow | undefined;
  /** Omitted: no pooler. Only for engines with a pooler in the catalog. */
  readonly pooler?: PoolerChoice | undefined;
  /**
   * True to let clients connect without TLS in the private network, at a separate port; only for engines with such a
   * listener. Omitted: false.
   */
  readonly private_listener?: boolean | undefined;
  /**
   * Layout of the databases of T-SQL clients, only for tsql. "single-db", the default: one database. "multi-db": CREATE
   * DATABASE makes others, and three-part names combine them. It is fixed; restores and forks inherit it.
   */
  readonly layout_mode?: string | undefined;
  /**
   * Collation of the texts of T-SQL clients, only for tsql: SQL_Latin1_General_CP1_CI_AS by default. It orders and
   * compares columns and texts that have no COLLATE clause. It is fixed; restores and forks inherit it.
   */
  readonly server_collation?: string | undefined;
  /** Omitted: no automatic growth. */
  readonly storage_autoscale?: StorageAutoscaleChoice | undefined;
  /** Number of nodes: the primary and its replicas. Omitted: 1, the only value for engines without replication. */
  readonly node_count?: number | undefined;
  /**
   * Mode of replication. "async", the default: a commit waits for no replica. "sync": for one replica, while one is
   * connected. "sync_strict": for one replica, without a time limit. 422 for engines without these modes.
   */
  readonly replication_mode?: string | undefined;
}

/** A sign-in: user name and password, or a code. */
export interface NewSession {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** One-time code, instead of user name and password. */
  readonly code?: string | undefined;
}

export interface NewStack {
  readonly name: string;
  readonly template_name: string;
  /** Monthly total of the preview; a difference of 0.01 is accepted. */
  readonly accepted_monthly_cost: number;
  /** Zone of resources without one in the template. */
  readonly zone?: string | undefined;
}

/** A token to be created. Scopes that the caller lacks are refused. */
export interface NewToken {
  readonly scopes: readonly string[];
  /** Lifetime in seconds, at most a year. */
  readonly ttl_seconds: number;
  /** Objects that it is limited to. Omitted: all objects of the organization. */
  readonly resources?: readonly TokenResource[] | undefined;
}

export interface NewTopic {
  readonly name: string;
  /** The parameter num.partitions by default. */
  readonly partitions?: number | undefined;
  /** At most the number of nodes, which is also the default, up to 3. */
  readonly replication_factor?: number | undefined;
  readonly config?: TopicSettings | undefined;
}

/** An endpoint to be created. */
export interface NewWebhook {
  /** URL, http:// or https://. */
  readonly url: string;
  /** Omitted or null: all types. */
  readonly events?: readonly string[] | null | undefined;
  readonly retry_policy?: RetryPolicy | undefined;
}

/**
 * Settings of the pooler. Omitted fields stay; the defaults are off and the first mode of the engine in the catalog.
 */
export interface PoolerChoice {
  readonly enabled?: boolean | undefined;
  /** Only for an engine with modes in the catalog. */
  readonly mode?: string | undefined;
}

/** Changes the fields that are present, for messages that are enqueued afterwards. */
export interface QueueChange {
  readonly visibility_timeout_seconds?: number | undefined;
  readonly max_attempts?: number | undefined;
  readonly dlq_enabled?: boolean | undefined;
}

/** Settings of the new service; all others are copied from the source. */
export interface RestoreChoice {
  /** Another name of the field `name`. A request has one of the two. */
  readonly target_service_name?: string | undefined;
  /** Omitted: the plan of the source. Zone and storage also default to the values of the source. */
  readonly plan_name?: string | undefined;
  readonly zone?: string | undefined;
  /** At least the storage of the source. */
  readonly storage_size_gb?: number | undefined;
  /** Number of nodes: the primary and its replicas. Omitted: 1. */
  readonly node_count?: number | undefined;
  /** Name of the new service. A request has either this or `target_service_name`. */
  readonly name?: string | undefined;
}

/** A filter of samples. */
export interface SampleFilter {
  /** Names of metrics in the catalog; may be repeated. */
  readonly metric: readonly string[];
  /** Time after which samples are listed. Omitted: a minute ago. */
  readonly since?: string | undefined;
}

/** Changes the fields that are present. */
export interface ServiceChange {
  readonly name?: string | undefined;
  readonly allowed_cidrs?: readonly string[] | undefined;
  /** Null removes the expiry. */
  readonly ttl_hours?: number | null | undefined;
  readonly deletion_protection?: boolean | undefined;
  /** Replaces all tags. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /** Null for the default window, which is derived from the service's id. */
  readonly maintenance_window?: MaintenanceWindow | null | undefined;
  /** A new plan, as in ResizeManagedService. Plan and storage together are one operation. */
  readonly plan_name?: string | undefined;
  /** A new storage size, as in ExpandStorage. The current size changes nothing. */
  readonly storage_size_gb?: number | undefined;
  /**
   * Opens or closes the listener without TLS in the private network, without a restart of the engine; only for engines
   * with such a listener.
   */
  readonly private_listener?: boolean | undefined;
  /**
   * Starts, changes or stops the pooler without a restart of the engine. Stopping it ends only the sessions of its
   * clients.
   */
  readonly pooler?: PoolerChoice | undefined;
  /** Enables, changes or disables automatic growth of the storage. */
  readonly storage_autoscale?: StorageAutoscaleChoice | undefined;
  /** Mode of replication, as in CreateManagedService; "sync" and "sync_strict" need a replica. */
  readonly replication_mode?: string | undefined;
}

/** A filter of services. All fields that are set must match. */
export interface ServiceFilter {
  readonly name?: string | undefined;
  readonly status?: ServiceStatus | undefined;
  readonly database_type?: string | undefined;
  /** A tag in the format "key:value". */
  readonly tag?: string | undefined;
  /** True to list deleted services that can be undeleted, instead of existing ones. */
  readonly deleted?: boolean | undefined;
}

/** Settings of the automatic growth. Omitted fields stay; the default is off. */
export interface StorageAutoscaleChoice {
  readonly enabled?: boolean | undefined;
  /** Maximum size of automatic growth; required to enable it. */
  readonly max_gb?: number | undefined;
}

export interface TopicChange {
  /** All partitions afterwards. */
  readonly partitions?: number | undefined;
  readonly config?: TopicSettingsChange | undefined;
}

/** Changes the fields that are present. */
export interface WebhookChange {
  readonly url?: string | undefined;
  /** Event types to send; null for all, an empty list for none. */
  readonly events?: readonly string[] | null | undefined;
  /** true also enables an endpoint that the platform disabled. */
  readonly active?: boolean | undefined;
  readonly retry_policy?: RetryPolicy | undefined;
}

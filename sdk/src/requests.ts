// Printed from the protos by `npm run generate`. Times are RFC 3339 texts. A key that is left out changes or chooses nothing.
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

/** How far back from now. Omitted: 1h, unless start is given. */
export type MetricPeriod = "15m" | "1h" | "6h" | "24h" | "7d";

/**
 * The time that one point stands for. Omitted: the finest that is allowed. 1m is allowed for up to 24 hours, 5m for up
 * to 7 days, both within the last 8 days; 1h always.
 */
export type MetricResolution = "1m" | "5m" | "1h";

/** Figure to sort by, in descending order. Omitted: total_time. */
export type QueryOrder = "total_time" | "calls" | "mean_time" | "rows";

/** A text or null for each name. */
export type ParameterChange = Readonly<Record<string, string | null>>;

export interface AckedMessage {
  readonly receipt: string;
}

export interface ExtendedMessage {
  readonly receipt: string;
  /** From now; that of the queue unless it is given. */
  readonly visibility_timeout_seconds?: number | undefined;
}

export interface NackedMessage {
  readonly receipt: string;
  /** Seconds from now until it can be claimed again. */
  readonly delay_seconds?: number | undefined;
  /** Kept as last_error, 4 KiB of it at most. */
  readonly error?: string | undefined;
  /** It is not to be tried again: it is dead once the delay is over. */
  readonly discard?: boolean | undefined;
}

/** `address` for e-mail, `url` for a webhook. */
export interface NewChannelConfig {
  /** Of type email. */
  readonly address?: string | undefined;
  /** Of type webhook: http:// or https://. */
  readonly url?: string | undefined;
}

export interface NewMessage {
  /** A JSON object of at most 256 KiB; every digit of its numbers is kept. */
  readonly payload: object;
  /** Seconds from now until it can be claimed. */
  readonly delay_seconds?: number | undefined;
}

/** Omitted fields stay as they are: at first off, and "transaction". */
export interface PoolerChoice {
  readonly enabled?: boolean | undefined;
  readonly mode?: string | undefined;
}

/** Omitted fields stay as they are: at first off. */
export interface StorageAutoscaleChoice {
  readonly enabled?: boolean | undefined;
  /** Needed to enable it: the storage does not grow beyond this by itself. */
  readonly max_gb?: number | undefined;
}

/** An app to be made. */
export interface NewApp {
  /** Lower-case letters, digits and `-`. */
  readonly name: string;
  /** https, or http on loopback. */
  readonly home_url?: string | undefined;
}

export interface AppChange {
  readonly home_url?: string | null | undefined;
}

/** A database to be attached. */
export interface NewAttachment {
  readonly service_id: string;
  /** The service's own database unless it is named. */
  readonly database_name?: string | undefined;
}

export interface NewAuth {
  readonly attachment_id: string;
  /** fallback unless it is given. */
  readonly issuer_domain_choice?: IssuerDomainChoice | undefined;
  readonly smtp?: NewAuthSmtp | undefined;
  readonly theme?: NewAuthTheme | undefined;
  /** Of the first client; `<home_url>/auth/callback` unless they are given. */
  readonly redirect_uris?: readonly string[] | undefined;
  /** Of `custom`: which verified domain of the app; the only one unless it is given. */
  readonly custom_domain?: string | undefined;
}

/** A mail server. */
export interface NewAuthSmtp {
  readonly host: string;
  /** 25, 465, 587 or 2525; 465 speaks TLS at once, the others after STARTTLS. */
  readonly port: number;
  /** Both credentials or none. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly from_address: string;
  readonly from_name?: string | undefined;
  /** PEM, for a server whose certificate no public authority signed. */
  readonly ca_certificate?: string | undefined;
}

/** A domain to be verified. */
export interface NewAppDomain {
  /** Such as login.shop.example. */
  readonly name: string;
}

/** Another provider, as its registration of this app says. */
export interface AuthIdpProviderChange {
  readonly client_id: string;
  /**
   * Omitted: the one that is stored stays, as long as issuer_url, client_id and ca_certificate do. Required at first.
   */
  readonly client_secret?: string | undefined;
  /** Of `oidc`: where discovery begins, https. Google's own is known. */
  readonly issuer_url?: string | undefined;
  /** `openid email` unless they are given, and always among them. */
  readonly scopes?: readonly string[] | undefined;
  /** PEM, for a provider whose certificate no public authority signed. */
  readonly ca_certificate?: string | undefined;
}

export interface AuthChange {
  readonly smtp?: NewAuthSmtp | undefined;
  readonly theme?: NewAuthTheme | undefined;
  readonly sign_up?: AuthSignUp | undefined;
  readonly mails_per_hour?: number | undefined;
}

/** A client to be made. */
export interface NewAuthClient {
  readonly name: string;
  readonly type: AuthClientType;
  /** One at least, compared to the letter; https, or loopback with any port. */
  readonly redirect_uris?: readonly string[] | undefined;
  readonly post_logout_redirect_uris?: readonly string[] | undefined;
  readonly allowed_origins?: readonly string[] | undefined;
  /** True unless it is given; a public one always has it. */
  readonly require_pkce?: boolean | undefined;
}

export interface AuthClientChange {
  readonly name?: string | undefined;
  readonly redirect_uris?: readonly string[] | undefined;
  readonly post_logout_redirect_uris?: readonly string[] | undefined;
  readonly allowed_origins?: readonly string[] | undefined;
  readonly require_pkce?: boolean | undefined;
}

export interface AuthUserFilter {
  readonly email?: string | undefined;
}

/** What is left out is the platform's own. */
export interface NewAuthTheme {
  /** 60 characters at most. */
  readonly display_name?: string | undefined;
  /** #rrggbb. */
  readonly brand_color?: string | undefined;
  /** https; only browsers fetch it. */
  readonly logo_url?: string | undefined;
}

/** What a new node is to be. */
export interface NewNode {
  /** Only replicas can be added. */
  readonly role: NodeRole;
  /** Omitted: the service's. */
  readonly zone?: string | undefined;
}

export interface ClaimOptions {
  /** 1 unless it is given. */
  readonly max?: number | undefined;
  /** That of the queue unless it is given. */
  readonly visibility_timeout_seconds?: number | undefined;
  /** How long to wait for the first message. */
  readonly wait_seconds?: number | undefined;
}

/** A rule to be made. */
export interface NewAlertRule {
  /** Left out: metric, condition and threshold. */
  readonly name?: string | undefined;
  readonly metric: string;
  readonly condition: AlertCondition;
  readonly threshold: number;
  /** Left out: warning. */
  readonly severity?: AlertSeverity | undefined;
  /** Left out: 0, the first sample fires. */
  readonly duration_minutes?: number | undefined;
  readonly notification_channel_id?: string | null | undefined;
  /** Left out: ignore. */
  readonly no_data?: AlertNoData | undefined;
  readonly paused?: boolean | undefined;
}

/** A key to be made. Scopes that the caller lacks are refused. */
export interface NewApiKey {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expires_at?: string | undefined;
}

/** A channel to be made. */
export interface NewChannel {
  readonly name: string;
  readonly type: ChannelType;
  readonly config: NewChannelConfig;
}

/** A user to be made; the platform makes its password. */
export interface NewDatabaseUser {
  readonly username: string;
  readonly role: UserRole;
}

/** What a new service is to be. */
export interface NewService {
  readonly name: string;
  readonly database_type: string;
  /** Omitted: the catalog's default for the engine. */
  readonly version?: string | undefined;
  readonly plan_name: string;
  /** Whole GB. */
  readonly storage_size_gb: number;
  readonly storage_tier?: string | undefined;
  readonly zone?: string | undefined;
  /** Omitted: the catalog's default. An empty list admits no client. */
  readonly allowed_cidrs?: readonly string[] | undefined;
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  /** The service is deleted after so many hours. Omitted: it is kept. */
  readonly ttl_hours?: number | undefined;
  readonly deletion_protection?: boolean | undefined;
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /** Omitted: two hours of some night, which follow from the service's id. */
  readonly maintenance_window?: MaintenanceWindow | undefined;
  /** Omitted: none runs. For engines that have one by the catalog. */
  readonly pooler?: PoolerChoice | undefined;
  /** Omitted: the storage grows when it is asked for alone. */
  readonly storage_autoscale?: StorageAutoscaleChoice | undefined;
  /** Omitted: 1. The first is the primary, all others are its replicas; engines without replicas have one. */
  readonly node_count?: number | undefined;
  /**
   * Replication that a commit waits for. "async", the default: none. "sync": one replica, while there is one.
   * "sync_strict": one replica, however long that takes. Engines without it: 422.
   */
  readonly replication_mode?: string | undefined;
}

/** An integration to be made. */
export interface NewMetricsExport {
  /** Null or absent: all services of the organization. */
  readonly service_id?: string | null | undefined;
  readonly name: string;
  readonly destination_type: DestinationType;
  readonly data_type: ExportDataType;
  /** 30 to 3600; 60 unless given. */
  readonly export_interval_seconds?: number | undefined;
  readonly configuration: Readonly<Record<string, unknown>>;
}

/** Only the fields that are present change. */
export interface MetricsExportChange {
  /** null: all services of the organization. */
  readonly service_id?: string | null | undefined;
  readonly name?: string | undefined;
  readonly destination_type?: DestinationType | undefined;
  readonly data_type?: ExportDataType | undefined;
  /** 30 to 3600. */
  readonly export_interval_seconds?: number | undefined;
  readonly configuration?: Readonly<Record<string, unknown>> | undefined;
  /** Refused: disable and enable are verbs of their own. */
  readonly is_enabled?: boolean | undefined;
}

/** A queue to be made. */
export interface NewQueue {
  /** Lower-case letters, digits, `-` and `_`. */
  readonly name: string;
  /** The service's own database unless it is named. */
  readonly database_name?: string | undefined;
  /** 30 seconds unless it is given. */
  readonly visibility_timeout_seconds?: number | undefined;
  /** 5 unless it is given. */
  readonly max_attempts?: number | undefined;
  /** True unless it is given. */
  readonly dlq_enabled?: boolean | undefined;
}

/** A token to be made. Scopes that the caller lacks are refused. */
export interface NewToken {
  readonly scopes: readonly string[];
  /** A year at most. */
  readonly ttl_seconds: number;
  /** Objects that it is limited to. Omitted: everything of the organization. */
  readonly resources?: readonly TokenResource[] | undefined;
}

/** An endpoint to be made. */
export interface NewWebhook {
  /** http:// or https://. */
  readonly url: string;
  /** Left out means all types. */
  readonly events?: readonly string[] | null | undefined;
  readonly retry_policy?: RetryPolicy | undefined;
}

/** Which metrics, of when. */
export interface MetricQuery {
  /** Names out of the catalog; may be repeated. */
  readonly metric: readonly string[];
  /** How far back from now. Omitted: 1h, unless start is given. */
  readonly period?: MetricPeriod | undefined;
  /**
   * The time that one point stands for. Omitted: the finest that is allowed. 1m is allowed for up to 24 hours, 5m for
   * up to 7 days, both within the last 8 days; 1h always.
   */
  readonly resolution?: MetricResolution | undefined;
  /** Only of these nodes; may be repeated. Omitted: of all that the service has. */
  readonly node_id?: readonly string[] | undefined;
  /** Instead of a period: from this time on, at most 400 days ago. */
  readonly start?: string | undefined;
  /** With start: up to this time. Omitted: now. */
  readonly end?: string | undefined;
}

/** An entry must have all that is given. */
export interface AuditFilter {
  readonly actor?: string | undefined;
  /** Id of an object. */
  readonly object?: string | undefined;
  readonly action?: string | undefined;
  /** From this time on. */
  readonly since?: string | undefined;
  /** Before this time. */
  readonly until?: string | undefined;
}

/** A backup must have all that is given. */
export interface BackupFilter {
  readonly type?: BackupType | undefined;
  /** A status, also with a capital: "completed" or "Completed". */
  readonly status?: BackupStatus | Capitalize<BackupStatus> | undefined;
}

/** A line must have all that is given. */
export interface LogFilter {
  readonly since?: string | undefined;
  /** Lines of this level and above. */
  readonly level?: LogLevel | undefined;
}

export interface NewPipeline {
  readonly template_id: string;
  /** Its services are named after it. */
  readonly name: string;
  readonly zone: string;
  /** In place of the plans of the template. */
  readonly plan_name?: string | undefined;
  /** The caller's own unless it is given. */
  readonly organization_id?: string | undefined;
}

export interface NewStack {
  readonly name: string;
  readonly template_name: string;
  /** The total of the preview; 0.01 more or less is taken. */
  readonly accepted_monthly_cost: number;
  /** For all its resources that name none. */
  readonly zone?: string | undefined;
}

/** A service must have all that is given. */
export interface ServiceFilter {
  readonly name?: string | undefined;
  readonly status?: ServiceStatus | undefined;
  readonly database_type?: string | undefined;
  /** "key:value". */
  readonly tag?: string | undefined;
  /** Lists deleted services that can be restored, in place of the existing ones. */
  readonly deleted?: boolean | undefined;
}

export interface MessageQuery {
  readonly task_id?: string | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** Which raw samples. */
export interface SampleFilter {
  /** Names out of the catalog; may be repeated. */
  readonly metric: readonly string[];
  /** The first page begins behind this time. Omitted: a minute ago. */
  readonly since?: string | undefined;
}

export interface InferenceProviderChange {
  readonly provider: string;
  /** Omitted: the stored one stays, as long as base_url and ca_certificate do. Required at first. */
  readonly api_key?: string | undefined;
  /** True at first. */
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
  /** Closes an open circuit; 409 while the month has cost as much as the limit. */
  readonly reset_circuit?: boolean | undefined;
  readonly alert_pct?: number | undefined;
}

export interface NewInferenceKey {
  readonly name: string;
  readonly monthly_token_limit?: number | undefined;
  readonly rate_limit_rpm?: number | undefined;
  readonly expires_at?: string | undefined;
}

/** Only the fields that are present change. */
export interface InferenceKeyChange {
  readonly name?: string | undefined;
  readonly status?: InferenceKeyStatus | undefined;
  readonly monthly_token_limit?: number | null | undefined;
  readonly rate_limit_rpm?: number | null | undefined;
  readonly expires_at?: string | null | undefined;
}

export interface InferenceUsageQuery {
  /** "model" or "key". */
  readonly group_by: string;
  /** Whole hours count; the beginning of this month (UTC) unless given. */
  readonly from?: string | undefined;
  /** Exclusive; now unless given. */
  readonly to?: string | undefined;
}

/** Settings that a restore may choose besides the name; all others are the source's. */
export interface RestoreChoice {
  readonly target_service_name: string;
  /** Omitted: that of the source, like zone and storage. */
  readonly plan_name?: string | undefined;
  readonly zone?: string | undefined;
  /** Not less than that of the source. */
  readonly storage_size_gb?: number | undefined;
}

/** Only the fields that are present change. */
export interface AlertRuleChange {
  readonly name?: string | undefined;
  readonly condition?: AlertCondition | undefined;
  readonly threshold?: number | undefined;
  readonly severity?: AlertSeverity | undefined;
  readonly duration_minutes?: number | undefined;
  /** null: the default channel. */
  readonly notification_channel_id?: string | null | undefined;
  readonly no_data?: AlertNoData | undefined;
  readonly paused?: boolean | undefined;
}

/** Only the fields that are present change. */
export interface BackupSettingsChange {
  /** UTC. */
  readonly hour?: number | undefined;
  readonly minute?: number | undefined;
  readonly retention_days?: number | undefined;
}

/** Only the fields that are present change. */
export interface ChannelChange {
  readonly name?: string | undefined;
  readonly config?: NewChannelConfig | undefined;
}

/** Only the fields that are present change. */
export interface ServiceChange {
  readonly name?: string | undefined;
  readonly allowed_cidrs?: readonly string[] | undefined;
  /** Null: it is kept. */
  readonly ttl_hours?: number | null | undefined;
  readonly deletion_protection?: boolean | undefined;
  /** Replaces all tags. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /** Null: the default window, which follows from the service's id. */
  readonly maintenance_window?: MaintenanceWindow | null | undefined;
  /** As in resize; both sizes at once are one operation. */
  readonly plan_name?: string | undefined;
  /** As in storage/expand; the size that it has is no change. */
  readonly storage_size_gb?: number | undefined;
  /**
   * Starts, changes or stops the pooler without a restart of the engine. Stopping it ends the sessions of its clients
   * only.
   */
  readonly pooler?: PoolerChoice | undefined;
  /** Lets the storage grow by itself, or no more. */
  readonly storage_autoscale?: StorageAutoscaleChoice | undefined;
  /** As at creation; "sync" and "sync_strict" need a replica. */
  readonly replication_mode?: string | undefined;
}

/** Only the fields that are present change, for messages from then on. */
export interface QueueChange {
  readonly visibility_timeout_seconds?: number | undefined;
  readonly max_attempts?: number | undefined;
  readonly dlq_enabled?: boolean | undefined;
}

/** Only the fields that are present change. */
export interface WebhookChange {
  readonly url?: string | undefined;
  /** null means all types, an empty list none. */
  readonly events?: readonly string[] | null | undefined;
  /** True also ends a switch-off by the platform. */
  readonly active?: boolean | undefined;
  readonly retry_policy?: RetryPolicy | undefined;
}

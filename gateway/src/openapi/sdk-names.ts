/**
 * Names of messages and enumerations of the public API in the SDK. Programs of users import them, so they are stable.
 */

export const prefix = "holdfast.v1.";

/** Messages with a type of their own in the SDK, as `Message` or `Message:TypeName`; all others are printed inline. */
export const messages: Readonly<Record<string, string>> = named([
  "AlertRule AuditLogEntry Backup BackupKey BackupSettings Channel ChannelConfig ChannelDelivery ClaimedMessage Configuration",
  "Connection CreatedUser DataSnapshot Database DatabaseDeletion DatabasePassword DatabaseUser DatabaseUserDeletion DeadMessage",
  "DefaultChannel Delivery Drill DrillCheck Fault FiringAlert Health LastDrill LogLine Maintenance MaintenanceWindow",
  "ManagedService Me Member MetricExposition MetricSample MetricSeries Metrics Operation Organization OrganizationFigures",
  "ParameterState PendingUpdateSummary Queue QueueMessage QueueTask QueryResult QueryStatistic QueryStatistics",
  "QueryStatisticsTask Replication ReplicationStatus RestoredFrom RotatedSecret RunningQueries RunningQuery ServiceBackups",
  "MetricsExport ListMetricsExportsResponse:MetricsExportPage MetricsExportTest",
  "CreatedInferenceKey InferenceCapabilities InferenceCircuit InferenceKey InferenceProvider InferenceSettings InferenceUsage",
  "InferenceUsageItem InferenceUsagePeriod InferenceUsageTotal",
  "ApiKey Catalog CreatedApiKey CreatedToken CreatedWebhook PendingUpdate Token",
  "SignalledQuery Task TaskSummary TimeRange TokenResource Translation Upgrade UpgradeFinding Webhook",
  "App AppDomain AppDomainRecord Attachment AppAuth AuthTheme AuthIdpProvider AuthSmtp AuthHealth AuthKey EnabledAuth RotatedAuthKey AuthTask AuthUser",
  "AuthSession AuthEvent AuthClient AuthSmtpTest ListAuthKeysResponse:AuthKeys ListAuthClientsResponse:AuthClients",
  "DeployedProject Deployment ManagedBy Pipeline PipelineDetail PipelineTemplate PlanChange PlanEntry Project ProjectDrift",
  "ProjectPlan SchemaText Stack StackMigration StackPreview StackTemplate UpgradePreview",
  "Node:ServiceNode ListMessagesResponse:QueueMessages ClaimMessagesResponse:ClaimedMessages ReceiptsResponse:Receipts",
]);

/** Requests, and messages inside them, that users build. */
export const requests: Readonly<Record<string, string>> = named([
  "AckedMessage ExtendedMessage NackedMessage NewChannelConfig NewMessage PoolerChoice StorageAutoscaleChoice",
  "CreateAppRequest:NewApp UpdateAppRequest:AppChange CreateAttachmentRequest:NewAttachment EnableAuthRequest:NewAuth NewAuthSmtp",
  "CreateAppDomainRequest:NewAppDomain PutAuthIdpProviderRequest:AuthIdpProviderChange",
  "UpdateAuthRequest:AuthChange CreateAuthClientRequest:NewAuthClient UpdateAuthClientRequest:AuthClientChange",
  "ListAuthUsersRequest:AuthUserFilter NewAuthTheme",
  "AddNodeRequest:NewNode ClaimMessagesRequest:ClaimOptions CreateAlertRuleRequest:NewAlertRule CreateApiKeyRequest:NewApiKey",
  "CreateChannelRequest:NewChannel CreateDatabaseUserRequest:NewDatabaseUser CreateManagedServiceRequest:NewService",
  "CreateMetricsExportRequest:NewMetricsExport UpdateMetricsExportRequest:MetricsExportChange",
  "CreateQueueRequest:NewQueue CreateTokenRequest:NewToken CreateWebhookRequest:NewWebhook GetMetricsRequest:MetricQuery",
  "ListAuditLogRequest:AuditFilter ListBackupsRequest:BackupFilter ListLogsRequest:LogFilter",
  "CreatePipelineRequest:NewPipeline CreateStackRequest:NewStack",
  "ListManagedServicesRequest:ServiceFilter ListMessagesRequest:MessageQuery ListMetricSamplesRequest:SampleFilter",
  "PutInferenceProviderRequest:InferenceProviderChange PutInferenceSettingsRequest:InferenceSettingsChange",
  "CreateInferenceKeyRequest:NewInferenceKey UpdateInferenceKeyRequest:InferenceKeyChange",
  "GetInferenceUsageRequest:InferenceUsageQuery",
  "RestoreBackupRequest:RestoreChoice UpdateAlertRuleRequest:AlertRuleChange",
  "UpdateBackupSettingsRequest:BackupSettingsChange UpdateChannelRequest:ChannelChange",
  "UpdateManagedServiceRequest:ServiceChange UpdateQueueRequest:QueueChange UpdateWebhookRequest:WebhookChange",
]);

/** Enumerations with a type of their own. */
export const enumerations: Readonly<Record<string, string>> = named([
  "AlertCondition AlertNoData AlertSeverity AlertState BackupKind BackupStatus BackupTrigger BackupType ChannelType",
  "DestinationType ExportDataType",
  "HealthStatus InferenceKeyStatus LogLevel MessageState NodeRole NodeStatus OperationStatus ParameterStatus QueueStatus RetryPolicy Role",
  "AppDomainStatus AppStatus AppHosting AttachmentStatus AuthStatus AuthKeyStatus AuthSignUp AuthClientType IssuerDomainChoice",
  "DeploymentStatus MigrationStatus PipelineStatus PlanAction ProjectStatus StackStatus UpgradeChangeType",
  "SyncState TaskStatus UpdateKind Weekday DatabaseUserRole:UserRole ManagedServiceStatus:ServiceStatus",
]);

/** A class of the SDK whose methods are one request each. */
export interface MethodClass {
  readonly name: string;
  readonly about: string;
  /** RPC names by method name. */
  readonly methods: Readonly<Record<string, string>>;
}

/** Classes with names ending in Methods are extended by hand-written classes. */
export const methodClasses: readonly MethodClass[] = [
  methodClass(
    "AlertMethods",
    "Alert rules on metrics of services, and firing alerts.",
    "rules:ListAlertRules createRule:CreateAlertRule getRule:GetAlertRule updateRule:UpdateAlertRule",
    "deleteRule:DeleteAlertRule firing:ListFiringAlerts defaultChannel:GetDefaultChannel",
    "setDefaultChannel:SetDefaultChannel",
  ),
  methodClass(
    "ApiKeys",
    "API keys: credentials of the organization's programs.",
    "list:ListApiKeys create:CreateApiKey rotate:RotateApiKey delete:DeleteApiKey",
  ),
  methodClass(
    "Apps",
    "Apps of the organization and their attached databases.",
    "list:ListApps create:CreateApp get:GetApp update:UpdateApp delete:DeleteApp attach:CreateAttachment",
    "detach:DeleteAttachment addDomain:CreateAppDomain verifyDomain:VerifyAppDomain deleteDomain:DeleteAppDomain",
  ),
  methodClass(
    "Auth",
    "Sign-in for an app: issuer, clients, signing keys and end users.",
    "enable:EnableAuth get:GetAuth update:UpdateAuth disable:DisableAuth keys:ListAuthKeys rotateKey:RotateAuthKey",
    "revokeSession:RevokeAuthSession eraseUser:EraseAuthUser deleteUser:DeleteAuthUser createUser:CreateAuthUser",
    "users:ListAuthUsers sessions:ListAuthSessions events:ListAuthEvents createClient:CreateAuthClient",
    "clients:ListAuthClients updateClient:UpdateAuthClient deleteClient:DeleteAuthClient",
    "rotateClientSecret:RotateAuthClientSecret testSmtp:TestAuthSmtp putProvider:PutAuthIdpProvider",
    "deleteProvider:DeleteAuthIdpProvider",
  ),
  methodClass(
    "BackupMethods",
    "Backups of a service, also of a deleted one.",
    "list:ListBackups get:GetBackup delete:DeleteBackup verify:VerifyBackup cancel:CancelBackup restore:RestoreBackup",
    "settings:GetBackupSettings updateSettings:UpdateBackupSettings drill:DrillBackups drills:ListDrills",
    "rotateKey:RotateBackupKey",
  ),
  methodClass(
    "ChannelMethods",
    "Notification channels of alerts: HTTP endpoints and e-mail addresses.",
    "list:ListChannels create:CreateChannel get:GetChannel update:UpdateChannel delete:DeleteChannel",
  ),
  methodClass("Configurations", "Parameters of a service's engine.", "get:GetConfiguration update:UpdateConfiguration"),
  methodClass("DatabaseMethods", "Databases in a service's engine.", "list:ListDatabases create:CreateDatabase"),
  methodClass(
    "DatabaseUserMethods",
    "Users in a service's engine, also those created in SQL.",
    "list:ListDatabaseUsers create:CreateDatabaseUser get:GetDatabaseUser revealPassword:RevealPassword",
    "resetPassword:ResetPassword",
  ),
  methodClass(
    "ExportMethods",
    "Exports of metrics and logs to monitoring systems.",
    "create:CreateMetricsExport get:GetMetricsExport update:UpdateMetricsExport delete:DeleteMetricsExport",
    "disable:DisableMetricsExport enable:EnableMetricsExport test:TestMetricsExport",
  ),
  methodClass(
    "InferenceMethods",
    "Language models of several providers behind one endpoint: providers, budgets, keys and usage.",
    "putProvider:PutInferenceProvider deleteProvider:DeleteInferenceProvider settings:GetInferenceSettings",
    "putSettings:PutInferenceSettings createKey:CreateInferenceKey keys:ListInferenceKeys getKey:GetInferenceKey",
    "updateKey:UpdateInferenceKey deleteKey:DeleteInferenceKey rotateKey:RotateInferenceKey usage:GetInferenceUsage",
  ),
  methodClass(
    "Members",
    "People of an organization.",
    "list:ListMembers add:AddMember update:UpdateMember remove:RemoveMember",
  ),
  methodClass(
    "MetricMethods",
    "Metrics of services' machines and engines, sampled every 15 s. The catalog lists all metrics.",
    "get:GetMetrics samples:ListMetricSamples export:ExportServiceMetrics exportAll:ExportMetrics",
    "exportPlatform:ExportPlatformMetrics",
  ),
  methodClass(
    "NodeMethods",
    "Nodes of a service; `services.nodes` lists them.",
    "add:AddNode get:GetNode remove:RemoveNode status:GetReplicationStatus failover:FailOver",
  ),
  methodClass(
    "Operations",
    "Operations: changes that take time, with steps, progress and outcome.",
    "list:ListOperations get:GetOperation",
  ),
  methodClass(
    "Organizations",
    "Organizations that the caller belongs to.",
    "list:ListOrganizations create:CreateOrganization get:GetOrganization rename:UpdateOrganization",
    "delete:DeleteOrganization",
  ),
  methodClass(
    "PipelineMethods",
    "Pipelines: several database services that are created from a template and used together.",
    "templates:ListPipelineTemplates template:GetPipelineTemplate create:CreatePipeline list:ListPipelines",
    "get:GetPipeline delete:DeletePipeline",
  ),
  methodClass(
    "ProjectMethods",
    "Projects: resources and their dependencies, described in one document.",
    "list:ListProjects get:GetProject deployments:ListDeployments deployment:GetDeployment abort:AbortDeployment",
    "schema:GetProjectSchema drift:GetDrift release:ReleaseResource delete:DeleteProject",
  ),
  methodClass(
    "StackMethods",
    "Stacks: resources created from a template at an accepted cost.",
    "templates:ListStackTemplates template:GetStackTemplate create:CreateStack list:ListStacks get:GetStack",
    "delete:DeleteStack previewUpgrade:PreviewUpgrade migrations:ListMigrations migration:GetMigration",
  ),
  methodClass(
    "QueryMethods",
    "Queries of a service: statistics, running sessions and the query console.",
    "statistics:GetQueryStatisticsTask running:ListRunningQueries cancel:CancelQuery terminate:TerminateQuery",
  ),
  methodClass(
    "QueueMethods",
    "Queues in a PostgreSQL service, and their messages over HTTP.",
    "create:CreateQueue list:ListQueues get:GetQueue update:UpdateQueue delete:DeleteQueue count:CountMessages",
    "counts:GetMessageCounts dead:ListDeadMessages purgeDead:PurgeDeadMessages redrive:RedriveMessages",
    "purge:PurgeMessages",
  ),
  methodClass(
    "ServiceMethods",
    "Managed database services.",
    "list:ListManagedServices create:CreateManagedService get:GetManagedService update:UpdateManagedService",
    "resize:ResizeManagedService expandStorage:ExpandStorage enableWrites:EnableWrites upgrade:UpgradeManagedService maintenance:GetMaintenance",
    "connection:GetConnection nodes:ListNodes taskSummary:GetTaskSummary",
  ),
  methodClass(
    "HealthMethods",
    "Health of services: the worst result of their checks, and its history.",
    "get:GetHealth",
  ),
  methodClass("Tasks", "Tasks: requests whose result is fetched later.", "get:GetTask"),
  methodClass(
    "Tokens",
    "Bearer tokens, with at most the scopes of their creator.",
    "list:ListTokens create:CreateToken delete:DeleteToken",
  ),
  methodClass(
    "UserMethods",
    "People and their passwords.",
    "create:CreateUser setUp:SetUpUser reset:ResetUser delete:DeleteUser",
  ),
  methodClass(
    "WebhookMethods",
    "Webhook endpoints, which receive the organization's events as signed requests.",
    "list:ListWebhooks create:CreateWebhook get:GetWebhook update:UpdateWebhook delete:DeleteWebhook",
    "rotateSecret:RotateSecret",
  ),
];

function methodClass(name: string, about: string, ...lines: readonly string[]): MethodClass {
  return { name, about, methods: Object.fromEntries(pairs(lines)) };
}

function named(lines: readonly string[]): Record<string, string> {
  const entries = pairs(lines).map(([name = "", as = name]) => [name, as] as const);
  return Object.fromEntries(entries.toSorted(([, a], [, b]) => (a < b ? -1 : 1)));
}

function pairs(lines: readonly string[]): string[][] {
  return lines.flatMap((line) => line.split(" ")).map((word) => word.split(":"));
}

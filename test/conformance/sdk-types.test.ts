import type { DescMessage } from "@bufbuild/protobuf";
import type { EventDefinitions } from "@holdfast/controller/systems.ts";
import type { ApiKeyService, CreateApiKeyRequestSchema } from "@holdfast/proto/holdfast/v1/api_key_pb.ts";
import type { AppAuthService } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import type { AppService } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import type { AuditService, ListAuditLogRequestSchema } from "@holdfast/proto/holdfast/v1/audit_pb.ts";
import type {
  BackupService,
  ListBackupsRequestSchema,
  RestoreBackupRequestSchema,
  UpdateBackupSettingsRequestSchema,
} from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import type { CatalogService } from "@holdfast/proto/holdfast/v1/catalog_pb.ts";
import type {
  ConfigurationService,
  UpdateConfigurationRequestSchema,
} from "@holdfast/proto/holdfast/v1/configuration_pb.ts";
import type { DatabaseService } from "@holdfast/proto/holdfast/v1/database_pb.ts";
import type {
  CreateDatabaseUserRequestSchema,
  DatabaseUserService,
} from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import type { EventService, ListServiceEventsRequestSchema } from "@holdfast/proto/holdfast/v1/event_pb.ts";
import type {
  CreateManagedServiceRequestSchema,
  ListLogsRequestSchema,
  ListManagedServicesRequestSchema,
  ManagedServiceService,
  UpdateManagedServiceRequestSchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { MaintenanceService } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import type { GetMetricsRequestSchema, MetricService } from "@holdfast/proto/holdfast/v1/metric_pb.ts";
import type { AddNodeRequestSchema, NodeService } from "@holdfast/proto/holdfast/v1/node_pb.ts";
import type { OperationService } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import type { OrganizationService } from "@holdfast/proto/holdfast/v1/organization_pb.ts";
import type { HealthService } from "@holdfast/proto/holdfast/v1/health_pb.ts";
import type { CreatePipelineRequestSchema, PipelineService } from "@holdfast/proto/holdfast/v1/pipeline_pb.ts";
import type { ProjectService } from "@holdfast/proto/holdfast/v1/project_pb.ts";
import type { CreateStackRequestSchema, StackService } from "@holdfast/proto/holdfast/v1/stack_pb.ts";
import type { QueryConsoleService } from "@holdfast/proto/holdfast/v1/query_console_pb.ts";
import type { QueryService } from "@holdfast/proto/holdfast/v1/query_pb.ts";
import type {
  CreateQueueRequestSchema,
  QueueService,
  UpdateQueueRequestSchema,
} from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import type { TaskService } from "@holdfast/proto/holdfast/v1/task_pb.ts";
import type { CreateTokenRequestSchema, TokenService } from "@holdfast/proto/holdfast/v1/token_pb.ts";
import type { UserService } from "@holdfast/proto/holdfast/v1/user_pb.ts";
import type {
  AlertService,
  CreateAlertRuleRequestSchema,
  UpdateAlertRuleRequestSchema,
} from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import type {
  ChannelService,
  CreateChannelRequestSchema,
  UpdateChannelRequestSchema,
} from "@holdfast/proto/holdfast/v1/channel_pb.ts";
import type {
  CreateWebhookRequestSchema,
  UpdateWebhookRequestSchema,
  WebhookService,
} from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import {
  CreateMetricsExportRequestSchema,
  MetricsExportService,
  UpdateMetricsExportRequestSchema,
} from "@holdfast/proto/holdfast/v1/metrics_export_pb.ts";
import type {
  CreateInferenceKeyRequestSchema,
  GetInferenceUsageRequestSchema,
  InferenceService,
  PutInferenceProviderRequestSchema,
  PutInferenceSettingsRequestSchema,
  UpdateInferenceKeyRequestSchema,
} from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { describe, expect, test } from "vitest";
import type * as sdk from "../../sdk/src/index.ts";
import { createClient } from "../../sdk/src/index.ts";
import { findRestMethod, restMethods } from "../support/api/api-methods.ts";
import type { RestEntry, RestShape } from "../support/api/rest-types.ts";

type Methods = (typeof ApiKeyService)["method"] &
  (typeof AppAuthService)["method"] &
  (typeof AppService)["method"] &
  (typeof AuditService)["method"] &
  (typeof BackupService)["method"] &
  (typeof CatalogService)["method"] &
  (typeof ConfigurationService)["method"] &
  (typeof DatabaseService)["method"] &
  (typeof DatabaseUserService)["method"] &
  (typeof EventService)["method"] &
  (typeof MaintenanceService)["method"] &
  (typeof ManagedServiceService)["method"] &
  (typeof MetricService)["method"] &
  (typeof NodeService)["method"] &
  (typeof OperationService)["method"] &
  (typeof OrganizationService)["method"] &
  (typeof HealthService)["method"] &
  (typeof QueryService)["method"] &
  (typeof QueryConsoleService)["method"] &
  (typeof QueueService)["method"] &
  (typeof ProjectService)["method"] &
  (typeof StackService)["method"] &
  (typeof PipelineService)["method"] &
  (typeof TaskService)["method"] &
  (typeof TokenService)["method"] &
  (typeof UserService)["method"] &
  (typeof AlertService)["method"] &
  (typeof ChannelService)["method"] &
  (typeof MetricsExportService)["method"] &
  (typeof InferenceService)["method"] &
  (typeof WebhookService)["method"];

const page = { limit: 7, cursor: "c" };
const time = "2026-03-01T12:00:00Z";
const service = { name: "n", database_type: "postgresql", plan_name: "p", storage_size_gb: 1 };
const choices = {
  version: "17",
  storage_tier: "s",
  zone: "z",
  parameters: {},
  node_count: 1,
  replication_mode: "async",
  pooler: { enabled: true, mode: "transaction" },
  storage_autoscale: { enabled: true, max_gb: 2 },
};
const target = { target_service_name: "n", plan_name: "p", zone: "z", storage_size_gb: 2 };
const change = {
  allowed_cidrs: [],
  ttl_hours: 1,
  deletion_protection: true,
  tags: {},
  maintenance_window: { day: "sunday", hour: 3 },
} as const;
const pooler = { pooler: { enabled: false, mode: "session" }, storage_autoscale: { enabled: false } } as const;
const sizes = { plan_name: "p", storage_size_gb: 1 } as const;

const queueSettings = { visibility_timeout_seconds: 1, max_attempts: 1, dlq_enabled: true };
const alertChange = {
  name: "n",
  condition: "gt",
  threshold: 1,
  severity: "info",
  duration_minutes: 1,
  notification_channel_id: null,
  no_data: "fire",
  paused: true,
} as const;
const inferenceProvider = {
  provider: "p",
  api_key: "k",
  enabled: true,
  base_url: "u",
  eu_endpoint: true,
  ca_certificate: "c",
};
const inferenceLimits = { monthly_cost_limit_cents: 1, eu_only: true, reset_circuit: true, alert_pct: 1 };
const keyLimits = { monthly_token_limit: 1, rate_limit_rpm: 1, expires_at: time };
const alertRule = { metric: "cpu", ...alertChange } as const;

const smtp = {
  host: "h",
  port: 587,
  username: "u",
  password: "p",
  from_address: "f",
  from_name: "n",
  ca_certificate: "c",
} as const;
const theme = { display_name: "n", brand_color: "#000000", logo_url: "u" } as const;
const uris = { redirect_uris: ["u"], post_logout_redirect_uris: ["u"], allowed_origins: ["o"] };

/** Each method of the API as the SDK calls it, with every field. */
const calls = {
  createApiKey: (c) => c.apiKeys.create({ name: "n", scopes: [], expires_at: time }),
  listApiKeys: (c) => c.apiKeys.list(page),
  deleteApiKey: (c) => c.apiKeys.delete("i"),
  rotateApiKey: (c) => c.apiKeys.rotate("i", 1),
  listAuditLog: (c) => c.auditLog({ actor: "a", object: "o", action: "x", since: time, until: time }, page),
  listBackups: (c) => c.backups.list("i", { type: "manual", status: "Completed" }, page),
  createBackup: (c) => c.backups.create("i"),
  getBackup: (c) => c.backups.get("i", "b"),
  deleteBackup: (c) => c.backups.delete("i", "b"),
  verifyBackup: (c) => c.backups.verify("i", "b"),
  cancelBackup: (c) => c.backups.cancel("i", "b"),
  restoreToPoint: (c) => c.backups.restoreTo("i", time, target),
  restoreBackup: (c) => c.backups.restore("i", "b", target),
  forkManagedService: (c) => c.services.fork("i", "n", { backupId: "b" }),
  getBackupSettings: (c) => c.backups.settings("i"),
  updateBackupSettings: (c) => c.backups.updateSettings("i", { hour: 1, minute: 2, retention_days: 3 }),
  drillBackups: (c) => c.backups.drill("i"),
  listDrills: (c) => c.backups.drills("i", page),
  rotateBackupKey: (c) => c.backups.rotateKey("i"),
  undeleteManagedService: (c) => c.services.undelete("i", { name: "n" }),
  getCatalog: (c) => c.catalog(),
  getConfiguration: (c) => c.configuration.get("i"),
  updateConfiguration: (c) => c.configuration.update("i", { work_mem: null }),
  listDatabases: (c) => c.databases.list("i", page),
  createDatabase: (c) => c.databases.create("i", "n"),
  deleteDatabase: (c) => c.databases.delete("i", "n"),
  listDatabaseUsers: (c) => c.databaseUsers.list("i", page),
  createDatabaseUser: (c) => c.databaseUsers.create("i", { username: "u", role: "readonly" }),
  getDatabaseUser: (c) => c.databaseUsers.get("i", "u"),
  deleteDatabaseUser: (c) => c.databaseUsers.delete("i", "u"),
  revealPassword: (c) => c.databaseUsers.revealPassword("i", "u"),
  resetPassword: (c) => c.databaseUsers.resetPassword("i", "u"),
  listEvents: (c) => c.events.list({ type: "service.running", service: "s", since: time }, page),
  listServiceEvents: (c) => c.events.listOfService("i", { type: "webhook.test", since: time }, page),
  listMetricSamples: (c) => c.metrics.samples("i", { metric: ["cpu"], since: time }, page),
  getMetrics: (c) =>
    c.metrics.get("i", { metric: ["cpu"], period: "1h", resolution: "1m", node_id: ["n"], start: time, end: time }),
  createManagedService: (c) => c.services.create({ ...service, ...choices, ...change }),
  listManagedServices: (c) =>
    c.services.list({ name: "n", status: "Running", database_type: "valkey", tag: "a:b", deleted: true }, page),
  getManagedService: (c) => c.services.get("i"),
  updateManagedService: (c) =>
    c.services.update("i", { name: "n", replication_mode: "async", ...change, ...pooler, ...sizes }),
  startManagedService: (c) => c.services.command("i", "start"),
  stopManagedService: (c) => c.services.command("i", "stop"),
  restartManagedService: (c) => c.services.command("i", "restart"),
  resizeManagedService: (c) => c.services.resize("i", "p"),
  expandStorage: (c) => c.services.expandStorage("i", 1),
  enableWrites: (c) => c.services.enableWrites("i"),
  deleteManagedService: (c) => c.services.delete("i", { skipFinalBackup: true }),
  getConnection: (c) => c.services.connection("i"),
  listNodes: (c) => c.services.nodes("i", page),
  listLogs: (c) => c.services.logs("i", { since: time, level: "info" }, page),
  getTaskSummary: (c) => c.services.taskSummary("i"),
  getMaintenance: (c) => c.services.maintenance("i"),
  upgradeManagedService: (c) => c.services.upgrade("i", "9", true, true),
  applyMaintenance: (c) => c.services.applyMaintenance("i", ["u"], { acceptTextOrderChange: true }),
  addNode: (c) => c.nodes.add("i", { role: "replica", zone: "z" }),
  getNode: (c) => c.nodes.get("i", "n"),
  removeNode: (c) => c.nodes.remove("i", "n"),
  getReplicationStatus: (c) => c.nodes.status("i", "n"),
  failOver: (c) => c.nodes.failover("i", "n"),
  getOperation: (c) => c.operations.get("i"),
  listOperations: (c) => c.operations.list("i", page),
  exportServiceMetrics: (c) => c.metrics.export("i"),
  exportPlatformMetrics: (c) => c.metrics.exportPlatform(),
  exportMetrics: (c) => c.metrics.exportAll(),
  getHealth: (c) => c.health.get("i"),
  listHealthHistory: (c) => c.health.history("i", { since: time }, page),
  getQueryStatistics: (c) => c.queries.top("i", { limit: 1, order: "calls" }),
  startQueryStatistics: (c) => c.queries.start("i", { limit: 1, sort_by: "rows" }),
  getQueryStatisticsTask: (c) => c.queries.statistics("i", "t"),
  listRunningQueries: (c) => c.queries.running("i"),
  cancelQuery: (c) => c.queries.cancel("i", "q"),
  terminateQuery: (c) => c.queries.terminate("i", "q"),
  translateQuestion: (c) => c.queries.translate("i", { question: "q", database_name: "d" }),
  executeQuery: (c) => c.queries.execute("i", { sql: "s", database_name: "d" }),
  deployProject: (c) => c.projects.deploy({ name: "n", resources: [] }, { planDigest: "d" }),
  planProject: (c) => c.projects.plan({ name: "n", resources: [] }),
  listProjects: (c) => c.projects.list(page),
  getProject: (c) => c.projects.get("n"),
  listDeployments: (c) => c.projects.deployments("n", page),
  getDeployment: (c) => c.projects.deployment("n", "d"),
  abortDeployment: (c) => c.projects.abort("n", "d"),
  getDrift: (c) => c.projects.drift("n"),
  releaseResource: (c) => c.projects.release("n", "r"),
  deleteProject: (c) => c.projects.delete("n"),
  getProjectSchema: (c) => c.projects.schema(),
  listStackTemplates: (c) => c.stacks.templates(page),
  getStackTemplate: (c) => c.stacks.template("n"),
  previewStack: (c) => c.stacks.preview("t"),
  createStack: (c) => c.stacks.create({ name: "n", template_name: "t", accepted_monthly_cost: 1, zone: "z" }),
  listStacks: (c) => c.stacks.list(page),
  getStack: (c) => c.stacks.get("i"),
  deleteStack: (c) => c.stacks.delete("i"),
  previewUpgrade: (c) => c.stacks.previewUpgrade("i"),
  upgradeStack: (c) => c.stacks.upgrade("i", 1),
  listMigrations: (c) => c.stacks.migrations("i", page),
  getMigration: (c) => c.stacks.migration("i", "m"),
  listPipelineTemplates: (c) => c.pipelines.templates(page),
  getPipelineTemplate: (c) => c.pipelines.template("i"),
  createPipeline: (c) =>
    c.pipelines.create({ template_id: "t", name: "n", zone: "z", plan_name: "p", organization_id: "o" }),
  listPipelines: (c) => c.pipelines.list(page),
  getPipeline: (c) => c.pipelines.get("i"),
  deletePipeline: (c) => c.pipelines.delete("i"),
  createQueue: (c) => c.queues.create("i", { name: "q", database_name: "d", ...queueSettings }),
  listQueues: (c) => c.queues.list("i", page),
  getQueue: (c) => c.queues.get("i", "q"),
  updateQueue: (c) => c.queues.update("i", "q", queueSettings),
  deleteQueue: (c) => c.queues.delete("i", "q"),
  enqueueMessages: (c) => c.queues.enqueue("i", "q", { messages: [{ payload: {}, delay_seconds: 1 }] }),
  listMessages: (c) => c.queues.messages("i", "q", { task_id: "t", ...page }),
  countMessages: (c) => c.queues.count("i", "q"),
  getMessageCounts: (c) => c.queues.counts("i", "q", "t"),
  claimMessages: (c) => c.queues.claim("i", "q", { max: 1, visibility_timeout_seconds: 1, wait_seconds: 1 }),
  ackMessages: (c) => c.queues.ack("i", "q", { messages: [{ receipt: "r" }] }),
  nackMessages: (c) =>
    c.queues.nack("i", "q", { messages: [{ receipt: "r", delay_seconds: 1, error: "e", discard: true }] }),
  extendMessages: (c) => c.queues.extend("i", "q", { messages: [{ receipt: "r", visibility_timeout_seconds: 1 }] }),
  listDeadMessages: (c) => c.queues.dead("i", "q", page),
  purgeDeadMessages: (c) => c.queues.purgeDead("i", "q"),
  redriveMessages: (c) => c.queues.redrive("i", "q", [1]),
  purgeMessages: (c) => c.queues.purge("i", "q"),
  getTask: (c) => c.tasks.get("i"),
  createOrganization: (c) => c.organizations.create("n"),
  listOrganizations: (c) => c.organizations.list(page),
  getOrganization: (c) => c.organizations.get("i"),
  updateOrganization: (c) => c.organizations.rename("i", "n"),
  deleteOrganization: (c) => c.organizations.delete("i"),
  listMembers: (c) => c.members.list("i", page),
  addMember: (c) => c.members.add("i", "u", "viewer"),
  updateMember: (c) => c.members.update("i", "u", "viewer"),
  removeMember: (c) => c.members.remove("i", "u"),
  createToken: (c) => c.tokens.create({ scopes: [], ttl_seconds: 1, resources: [] }),
  listTokens: (c) => c.tokens.list(page),
  deleteToken: (c) => c.tokens.delete("i"),
  createUser: (c) => c.users.create("u"),
  resetUser: (c) => c.users.reset("u"),
  deleteUser: (c) => c.users.delete("u"),
  setUpUser: (c) => c.users.setUp("t", "p"),
  changePassword: (c) => c.users.changePassword("a", "b"),
  getMe: (c) => c.me(),
  createAlertRule: (c) => c.alerts.createRule("i", alertRule),
  listAlertRules: (c) => c.alerts.rules("i", page),
  getAlertRule: (c) => c.alerts.getRule("i", "r"),
  updateAlertRule: (c) => c.alerts.updateRule("i", "r", alertChange),
  deleteAlertRule: (c) => c.alerts.deleteRule("i", "r"),
  listAlertEvents: (c) => c.alerts.events("i", { since: time }, page),
  listFiringAlerts: (c) => c.alerts.firing(page),
  getDefaultChannel: (c) => c.alerts.defaultChannel(),
  setDefaultChannel: (c) => c.alerts.setDefaultChannel(null),
  createChannel: (c) => c.channels.create({ name: "n", type: "webhook", config: { url: "u" } }),
  listChannels: (c) => c.channels.list(page),
  getChannel: (c) => c.channels.get("i"),
  updateChannel: (c) => c.channels.update("i", { name: "n", config: { url: "u" } }),
  deleteChannel: (c) => c.channels.delete("i"),
  testChannel: (c) => c.channels.test("i"),
  listChannelDeliveries: (c) => c.channels.deliveries("i"),
  createMetricsExport: (c) =>
    c.exports.create({
      service_id: "s",
      name: "n",
      destination_type: "otlp",
      data_type: "both",
      export_interval_seconds: 30,
      configuration: {},
    }),
  listMetricsExports: (c) =>
    c.exports.page({ service_id: "s", destination_type: "otlp", is_enabled: true, limit: 7, offset: 7 }),
  getMetricsExport: (c) => c.exports.get("i"),
  updateMetricsExport: (c) =>
    c.exports.update("i", {
      service_id: null,
      name: "n",
      destination_type: "otlp",
      data_type: "logs",
      export_interval_seconds: 30,
      configuration: {},
      is_enabled: true,
    }),
  deleteMetricsExport: (c) => c.exports.delete("i"),
  disableMetricsExport: (c) => c.exports.disable("i"),
  enableMetricsExport: (c) => c.exports.enable("i"),
  testMetricsExport: (c) => c.exports.test("i"),
  putInferenceProvider: (c) => c.inference.putProvider("i", inferenceProvider),
  listInferenceProviders: (c) => c.inference.providers("i"),
  deleteInferenceProvider: (c) => c.inference.deleteProvider("i", "p"),
  putInferenceSettings: (c) => c.inference.putSettings("i", inferenceLimits),
  getInferenceSettings: (c) => c.inference.settings("i"),
  createInferenceKey: (c) => c.inference.createKey("i", { name: "n", ...keyLimits }),
  listInferenceKeys: (c) => c.inference.keys("i", page),
  getInferenceKey: (c) => c.inference.getKey("i", "k"),
  updateInferenceKey: (c) => c.inference.updateKey("i", "k", { name: "n", status: "suspended", ...keyLimits }),
  deleteInferenceKey: (c) => c.inference.deleteKey("i", "k"),
  rotateInferenceKey: (c) => c.inference.rotateKey("i", "k"),
  getInferenceUsage: (c) => c.inference.usage("i", { group_by: "key", from: time, to: time }),
  createApp: (c) => c.apps.create({ name: "n", home_url: "u" }),
  listApps: (c) => c.apps.list(page),
  getApp: (c) => c.apps.get("i"),
  updateApp: (c) => c.apps.update("i", { home_url: null }),
  deleteApp: (c) => c.apps.delete("i"),
  createAttachment: (c) => c.apps.attach("i", { service_id: "s", database_name: "d" }),
  deleteAttachment: (c) => c.apps.detach("i", "a"),
  createAppDomain: (c) => c.apps.addDomain("i", { name: "shop.example" }),
  verifyAppDomain: (c) => c.apps.verifyDomain("i", "d"),
  deleteAppDomain: (c) => c.apps.deleteDomain("i", "d"),
  enableAuth: (c) =>
    c.auth.enable("i", {
      attachment_id: "a",
      issuer_domain_choice: "custom",
      smtp,
      theme,
      redirect_uris: ["u"],
      custom_domain: "d",
    }),
  getAuth: (c) => c.auth.get("i"),
  updateAuth: (c) => c.auth.update("i", { smtp, theme, sign_up: "closed", mails_per_hour: 1 }),
  disableAuth: (c) => c.auth.disable("i"),
  rotateAuthKey: (c) => c.auth.rotateKey("i", true),
  listAuthKeys: (c) => c.auth.keys("i"),
  revokeAuthSession: (c) => c.auth.revokeSession("i", "s"),
  eraseAuthUser: (c) => c.auth.eraseUser("i", "e", "u"),
  deleteAuthUser: (c) => c.auth.deleteUser("i", "u"),
  createAuthUser: (c) => c.auth.createUser("i", "e"),
  listAuthUsers: (c) => c.auth.users("i", { email: "e" }, page),
  listAuthSessions: (c) => c.auth.sessions("i", "u", page),
  listAuthEvents: (c) => c.auth.events("i", page),
  createAuthClient: (c) => c.auth.createClient("i", { name: "n", type: "public", require_pkce: true, ...uris }),
  listAuthClients: (c) => c.auth.clients("i"),
  updateAuthClient: (c) => c.auth.updateClient("i", "c", { name: "n", require_pkce: true, ...uris }),
  deleteAuthClient: (c) => c.auth.deleteClient("i", "c"),
  rotateAuthClientSecret: (c) => c.auth.rotateClientSecret("i", "c"),
  putAuthIdpProvider: (c) =>
    c.auth.putProvider("i", "oidc", {
      client_id: "c",
      client_secret: "s",
      issuer_url: "u",
      scopes: ["profile"],
      ca_certificate: "p",
    }),
  deleteAuthIdpProvider: (c) => c.auth.deleteProvider("i", "google"),
  testAuthSmtp: (c) => c.auth.testSmtp("i", "e"),
  createWebhook: (c) => c.webhooks.create({ url: "u", events: [], retry_policy: "standard" }),
  listWebhooks: (c) => c.webhooks.list(page),
  getWebhook: (c) => c.webhooks.get("i"),
  updateWebhook: (c) => c.webhooks.update("i", { url: "u", events: null, active: true, retry_policy: "extended" }),
  deleteWebhook: (c) => c.webhooks.delete("i"),
  testWebhook: (c) => c.webhooks.test("i"),
  rotateSecret: (c) => c.webhooks.rotateSecret("i", 1),
  listDeliveries: (c) => c.webhooks.deliveries("i"),
  redeliver: (c) => c.webhooks.redeliver("i", "d"),
} as const satisfies { readonly [K in keyof Methods]: (client: sdk.Client) => unknown };

type Calls = typeof calls;
type Mutual<A, Widest, Narrowest> = [A] extends [Widest] ? ([Narrowest] extends [A] ? true : false) : false;

/** A client's type equals the message: no less with each sub-message present, and no more with any of them null. */
type Same<A, Schema extends DescMessage> =
  A extends sdk.List<sdk.PlatformEvent>
    ? SameEvent<Schema>
    : A extends sdk.List<infer Entry>
      ? Mutual<Entry, RestEntry<Schema>, RestEntry<Schema, never>>
      : A extends readonly (infer Entry)[]
        ? Mutual<Entry, RestEntry<Schema>, RestEntry<Schema, never>>
        : [A] extends [void]
          ? Schema["typeName"] extends "google.protobuf.Empty"
            ? true
            : false
          : Mutual<A, RestShape<Schema>, RestShape<Schema, never>>;

/** An event has the message's members, and by its type the data that the platform's own catalog declares. */
type SameEvent<Schema extends DescMessage> = [sdk.PlatformEvent] extends [RestEntry<Schema>]
  ? Mutual<keyof sdk.PlatformEvent, keyof RestEntry<Schema>, keyof RestEntry<Schema>>
  : false;
type Declared = EventDefinitions;
type DataOf<Fields> = {
  readonly [K in keyof Fields as Fields[K] extends { optional: true } ? never : K]: ValueOrNull<Fields[K]>;
} & { readonly [K in keyof Fields as Fields[K] extends { optional: true } ? K : never]?: ValueOf<Fields[K]> };
type ValueOf<Field> = Field extends { type: infer T extends keyof OtherValues } ? OtherValues[T] : string;
type ValueOrNull<Field> = Field extends { nullable: true } ? ValueOf<Field> | null : ValueOf<Field>;
type OtherValues = {
  number: number;
  boolean: boolean;
  "string[]": readonly string[];
  "object[]": readonly object[];
};
type WrongEvents = {
  [T in keyof Declared | sdk.EventType]: T extends keyof Declared & sdk.EventType
    ? Mutual<sdk.EventData[T], DataOf<Declared[T]["data"]>, DataOf<Declared[T]["data"]>> extends true
      ? never
      : T
    : T;
}[keyof Declared | sdk.EventType];

/** Methods whose responses the SDK types otherwise. */
type WrongAnswers = {
  [K in keyof Calls]: Same<Awaited<ReturnType<Calls[K]>>, Methods[K]["output"]> extends true ? never : K;
}[keyof Calls];

/** Members of the path, of paging, and of gRPC alone. */
type Elsewhere = "id" | "org_id" | "rule_id" | "service_id" | "update_mask" | "limit" | "cursor" | "follow";
type RequestOf<Schema extends DescMessage> = Omit<RestShape<Schema, never>, Elsewhere>;
type Given<Input> = { [K in keyof Input]-?: Exclude<Input[K], undefined | null> };

/** Names and types of a request's members; whether they are optional or nullable is written by hand. */
type SameInput<Input, Schema extends DescMessage> = Mutual<
  Given<Input>,
  Given<RequestOf<Schema>>,
  Given<RequestOf<Schema>>
>;

/** A message in a request has all of its members, each optional. */
type WithConfig<Input> = Omit<Input, "config"> & {
  readonly config: { readonly [K in keyof sdk.NewChannelConfig]-?: string | null };
};

/** Its choices are messages in a request too. */
type WithChoices<Input> = Omit<Input, "pooler" | "storage_autoscale"> & {
  readonly pooler?: { readonly [K in keyof sdk.PoolerChoice]-?: NonNullable<sdk.PoolerChoice[K]> | null } | undefined;
  readonly storage_autoscale?:
    | { readonly [K in keyof sdk.StorageAutoscaleChoice]-?: NonNullable<sdk.StorageAutoscaleChoice[K]> | null }
    | undefined;
};

interface Inputs {
  newApiKey: SameInput<sdk.NewApiKey, typeof CreateApiKeyRequestSchema>;
  auditFilter: SameInput<sdk.AuditFilter, typeof ListAuditLogRequestSchema>;
  backupFilter: SameInput<sdk.BackupFilter, typeof ListBackupsRequestSchema>;
  restoreChoice: SameInput<sdk.RestoreChoice & { backup_id: string }, typeof RestoreBackupRequestSchema>;
  backupSettings: SameInput<sdk.BackupSettingsChange, typeof UpdateBackupSettingsRequestSchema>;
  parameters: SameInput<{ parameters: sdk.ParameterChange }, typeof UpdateConfigurationRequestSchema>;
  newDatabaseUser: SameInput<sdk.NewDatabaseUser, typeof CreateDatabaseUserRequestSchema>;
  eventFilter: SameInput<
    Omit<sdk.EventFilter, "type"> & { readonly type: string },
    typeof ListServiceEventsRequestSchema
  >;
  newService: SameInput<WithChoices<sdk.NewService>, typeof CreateManagedServiceRequestSchema>;
  serviceChange: SameInput<WithChoices<sdk.ServiceChange>, typeof UpdateManagedServiceRequestSchema>;
  serviceFilter: SameInput<sdk.ServiceFilter, typeof ListManagedServicesRequestSchema>;
  metricQuery: SameInput<sdk.MetricQuery, typeof GetMetricsRequestSchema>;
  logFilter: SameInput<sdk.LogFilter, typeof ListLogsRequestSchema>;
  newStack: SameInput<sdk.NewStack, typeof CreateStackRequestSchema>;
  newPipeline: SameInput<sdk.NewPipeline, typeof CreatePipelineRequestSchema>;
  newQueue: SameInput<sdk.NewQueue, typeof CreateQueueRequestSchema>;
  queueChange: SameInput<sdk.QueueChange & { readonly name: string }, typeof UpdateQueueRequestSchema>;
  newNode: SameInput<sdk.NewNode, typeof AddNodeRequestSchema>;
  newToken: SameInput<sdk.NewToken, typeof CreateTokenRequestSchema>;
  newAlertRule: SameInput<sdk.NewAlertRule, typeof CreateAlertRuleRequestSchema>;
  alertRuleChange: SameInput<sdk.AlertRuleChange, typeof UpdateAlertRuleRequestSchema>;
  newChannel: SameInput<WithConfig<sdk.NewChannel>, typeof CreateChannelRequestSchema>;
  channelChange: SameInput<WithConfig<sdk.ChannelChange>, typeof UpdateChannelRequestSchema>;
  newMetricsExport: SameInput<Omit<sdk.NewMetricsExport, "service_id">, typeof CreateMetricsExportRequestSchema>;
  metricsExportChange: SameInput<Omit<sdk.MetricsExportChange, "service_id">, typeof UpdateMetricsExportRequestSchema>;
  inferenceProvider: SameInput<sdk.InferenceProviderChange, typeof PutInferenceProviderRequestSchema>;
  inferenceSettings: SameInput<sdk.InferenceSettingsChange, typeof PutInferenceSettingsRequestSchema>;
  newInferenceKey: SameInput<sdk.NewInferenceKey, typeof CreateInferenceKeyRequestSchema>;
  inferenceKeyChange: SameInput<sdk.InferenceKeyChange, typeof UpdateInferenceKeyRequestSchema>;
  inferenceUsage: SameInput<sdk.InferenceUsageQuery, typeof GetInferenceUsageRequestSchema>;
  newWebhook: SameInput<sdk.NewWebhook, typeof CreateWebhookRequestSchema>;
  webhookChange: SameInput<sdk.WebhookChange, typeof UpdateWebhookRequestSchema>;
}
type WrongInputs = { [K in keyof Inputs]: Inputs[K] extends true ? never : K }[keyof Inputs];

/** Does not compile while a type of the SDK differs from the protos; the error names the method or the input. */
const wrongAnswers: Record<WrongAnswers, never> = {};
const wrongInputs: Record<WrongInputs, never> = {};
const wrongEvents: Record<WrongEvents, never> = {};

describe("the SDK's methods", () => {
  test("are as many as the API's, and their types are the protos'", () => {
    expect(Object.keys(calls).toSorted()).toEqual(restMethods.map(({ method }) => method.localName).toSorted());
    expect({ ...wrongAnswers, ...wrongInputs, ...wrongEvents }).toEqual({});
  });

  test.each(restMethods.map((rest) => [rest.method.localName, rest] as const))("%s", async (name, { method, path }) => {
    const requests: { verb: string; url: URL; body: object }[] = [];
    const client = createClient({
      baseUrl: "https://holdfast.test",
      fetch: async (input, init) => {
        const body = typeof init?.body === "string" ? (JSON.parse(init.body) as object) : {};
        requests.push({ verb: init?.method ?? "", url: input as URL, body });
        return Response.json({});
      },
    });
    const answer: unknown = calls[name as keyof Calls](client);
    await (typeof answer === "object" && answer !== null && "pages" in answer
      ? (answer as sdk.List<unknown>).pages().next()
      : answer);
    expect(requests).toHaveLength(1);
    const [{ verb, url, body } = { verb: "", url: new URL("x:"), body: {} }] = requests;
    expect(findRestMethod(verb, url.pathname)?.method.name).toBe(method.name);
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, field]) => field ?? "");
    const sent = [...inPath, ...url.searchParams.keys(), ...Object.keys(body)];
    const fields = method.input.fields.map((field) => field.name).filter((field) => !isElsewhere(field));
    expect(sent.toSorted()).toEqual(fields.toSorted());
  });
});

/** update_mask is for gRPC; `follow` lists have methods of their own. */
function isElsewhere(field: string): boolean {
  return field === "update_mask" || field === "follow";
}

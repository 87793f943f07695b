export type { Alerts, Channels } from "./alerts.ts";
export type { Apps } from "./apps.ts";
export type { Backups } from "./backups.ts";
export { type Client, createClient } from "./client.ts";
export type { Databases, DatabaseUsers } from "./databases.ts";
export * from "./errors.ts";
export type * from "./event-types.ts";
export type { Events } from "./events.ts";
export type { ExportFilter, Exports } from "./exports.ts";
export type { Files } from "./files.ts";
export type {
  ApiKeys,
  Auth,
  Configurations,
  ConsumerGroups,
  Indices,
  Members,
  Operations,
  Organizations,
  Sessions,
  Tasks,
  Tokens,
  Topics,
} from "./methods.ts";
export type { ServiceMetrics } from "./metrics.ts";
export type { Nodes } from "./nodes.ts";
export type { List, ListOptions, Page } from "./pages.ts";
export type { Pipelines } from "./pipelines.ts";
export { DeploymentFailed, type DeploymentWaitOptions, type ProjectDescriptor, type Projects } from "./projects.ts";
export type { Queries } from "./queries.ts";
export type { Queues } from "./queues.ts";
export type * from "./requests.ts";
export type * from "./responses.ts";
export type { ServiceHealth } from "./service-health.ts";
export type { LogPage, Services, Verb } from "./services.ts";
export { MigrationFailed, StackFailed, type Stacks } from "./stacks.ts";
export type { CallOptions, Credentials, TransportOptions } from "./transport.ts";
export type { Users } from "./users.ts";
export {
  type VerifyWebhookOptions,
  verifyWebhook,
  type WebhookHeaders,
  WebhookVerificationFailed,
} from "./verify-webhook.ts";
export {
  type DeletedTarget,
  OperationFailed,
  type OperationWaitOptions,
  ServiceFailed,
  type WaitOptions,
  WaitTimedOut,
} from "./wait.ts";
export type { Accepted, Webhooks } from "./webhooks.ts";

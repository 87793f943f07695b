export type * from "./access-types.ts";
export type { ApiKeys } from "./api-keys.ts";
export type * from "./catalog-types.ts";
export { type Client, createClient } from "./client.ts";
export type * from "./configuration-types.ts";
export type { Configurations } from "./configurations.ts";
export type * from "./database-types.ts";
export type { DatabaseUsers } from "./database-users.ts";
export type { Databases } from "./databases.ts";
export * from "./errors.ts";
export type * from "./event-types.ts";
export type { Events } from "./events.ts";
export type * from "./log-types.ts";
export type * from "./maintenance-types.ts";
export type { Members } from "./members.ts";
export type * from "./metric-types.ts";
export type { ServiceMetrics } from "./metrics.ts";
export type * from "./operation-types.ts";
export type { Operations } from "./operations.ts";
export type { Organizations } from "./organizations.ts";
export type { List, ListOptions, Page } from "./pages.ts";
export type * from "./service-types.ts";
export type { Services, Verb } from "./services.ts";
export type { Tokens } from "./tokens.ts";
export type { CallOptions, Credentials, TransportOptions } from "./transport.ts";
export type { Users } from "./users.ts";
export {
  type VerifyWebhookOptions,
  verifyWebhook,
  type WebhookHeaders,
  WebhookVerificationFailed,
} from "./verify-webhook.ts";
export { OperationFailed, type OperationWaitOptions, ServiceFailed, type WaitOptions, WaitTimedOut } from "./wait.ts";
export type * from "./webhook-types.ts";
export type { Webhooks } from "./webhooks.ts";

import { type DescField, ScalarType } from "@bufbuild/protobuf";

/** Names of fields that are a UUID in every message. */
const everywhere = new Set([
  "app_id",
  "app_service_id",
  "attachment_id",
  "backup_id",
  "base_backup_id",
  "channel_id",
  "database_service_id",
  "deployment_id",
  "domain_id",
  "migration_id",
  "node_id",
  "notification_channel_id",
  "operation_id",
  "org_id",
  "organization_id",
  "primary_node_id",
  "project_id",
  "request_id",
  "rule_id",
  "service_id",
  "stack_id",
  "webhook_id",
]);

/** Messages whose `id` is a UUID. */
const own = new Set([
  "App",
  "AppDomain",
  "Attachment",
  "AuthSession",
  "AuthUser",
  "Backup",
  "Channel",
  "Deployment",
  "ManagedService",
  "Node",
  "Operation",
  "Organization",
  "Project",
  "Queue",
  "Stack",
  "StackMigration",
]);

/** Requests whose `id` is a UUID. */
const named = /^(Get|Update|Delete|Start|Stop|Restart)(App|ManagedService|Stack|Channel)Request$/;

/** True when the field is the UUID of an object. Ids of people, keys, tasks and images have other formats. */
export function isUuid({ name, parent, scalar, fieldKind }: DescField): boolean {
  if (scalar !== ScalarType.STRING || fieldKind === "map") return false;
  return everywhere.has(name) || (name === "id" && (own.has(parent.name) || named.test(parent.name)));
}

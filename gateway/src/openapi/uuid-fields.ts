import { type DescField, ScalarType } from "@bufbuild/protobuf";

/** Fields that hold a UUID wherever they are. */
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

/** Messages of answers whose `id` is one. */
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

/** Requests that name an object of these by `id`. */
const named = /^(Get|Update|Delete|Start|Stop|Restart)(App|ManagedService|Stack|Channel)Request$/;

/** Does the field hold the UUID of an object? Ids of people, keys, tasks and images have other forms. */
export function isUuid({ name, parent, scalar, fieldKind }: DescField): boolean {
  if (scalar !== ScalarType.STRING || fieldKind === "map") return false;
  return everywhere.has(name) || (name === "id" && (own.has(parent.name) || named.test(parent.name)));
}

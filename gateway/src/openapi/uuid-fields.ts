import { type DescField, ScalarType } from "@bufbuild/protobuf";
import { rulesOf } from "../json/field-rules.ts";

/** Names of fields that are a UUID in every message. Any other field has the option `uuid`. */
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

/** True when the field is the UUID of an object. Ids of people, keys, tasks and images have other formats. */
export function isUuid(field: DescField): boolean {
  if (field.scalar !== ScalarType.STRING || field.fieldKind === "map") return false;
  return everywhere.has(field.name) || rulesOf(field).uuid;
}

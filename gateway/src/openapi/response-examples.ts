import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { bareItems, isNullable, rulesOf } from "../json/field-rules.ts";

const service = "019a2f5e-7c1a-7d3e-9a56-3f0b8c2d4e61";
const node = "019a2f5e-7c1a-7d3e-9a56-3f0c1d7b9a02";
const operation = "019a2f5e-7c1b-7f00-8d21-6b5a4c3e2d10";
const key = "hfk_Zb0pY6Q39zF0";

/** Example values of fields in responses, by `Message.field`, or by `field` for all messages. */
// biome-ignore format: a table, aligned so that it reads as one
const fieldExamples: Readonly<Record<string, unknown>> = {
  id:                             service,
  service_id:                     service,
  node_id:                        node,
  operation_id:                   operation,
  "Node.id":                      node,
  "ConnectionNode.id":            node,
  "Operation.id":                 operation,
  "Operation.type":               "create",
  "Operation.status":             "completed",
  "Operation.progress_pct":       100,
  "Operation.started_at":         "2030-01-31T12:00:00.120Z",
  "Operation.finished_at":        "2030-01-31T12:00:01.950Z",
  "ManagedService.operation":     null,
  "ManagedService.status":        "Running",
  "TaskSummary.status":           "Provisioning",
  "TaskSummary.current_task":     "SetupServer",
  "TaskSummary.progress_pct":     40,
  "ManagedService.pending_updates": [],
  "Maintenance.operation":        null,
  "Maintenance.held":             null,
  image:                          "trixie-9d01c7be42aa5f13",
  engine_version:                 "17.10",
  guest_kernel:                   null,
  day:                            "sunday",
  hour:                           3,
  next_window_from:               "2030-02-03T03:00:00Z",
  next_window_until:              "2030-02-03T05:00:00Z",
  apply_at:                       "2030-02-03T03:17:21Z",
  available_since:                "2030-01-31T12:00:00Z",
  "PlanEntry.action":            "create",
  "QueueMessage.id":              17,
  "ClaimedMessage.id":            17,
  "DeadMessage.id":               17,
  "PendingUpdate.id":             "trixie-3f2a9c0d51e78b64",
  "PendingUpdate.kind":           "engine_minor",
  "PendingUpdate.title":          "postgresql 17.10 to 17.11",
  "PendingUpdate.description":    "The engine is stopped in order and started from an image with postgresql 17.11, over the same data.",
  "PendingUpdate.from":           "17.10",
  "PendingUpdate.to":             "17.11",
  blocked_reason:                 null,
  name:                           "orders",
  title:                          "PostgreSQL",
  database_type:                  "postgresql",
  version:                        "17",
  default_version:                "17",
  versions:                       ["17", "18"],
  "CatalogEngine.versions":       [{ version: "17", available: true, reason: null }],
  extensions:                     ["pg_stat_statements", "pg_trgm"],
  plan_name:                      "tier-1",
  vcpu:                           1,
  memory_gb:                      2,
  "Plan.kind":                    "container",
  monthly_cost:                   15,
  monthly_cost_per_gb:            0.2,
  currency:                       "EUR",
  storage_tier:                   "maxiops",
  medium:                         "NVMe SSD",
  use:                            "production databases",
  zone:                           "local",
  "Zone.title":                   "This machine",
  storage_size_gb:                10,
  storage_size_gb_max:            16_384,
  ttl_hours_max:                  720,
  allowed_cidrs_max:              256,
  tags_max:                       50,
  allowed_cidrs:                  ["203.0.113.0/24", "2001:db8::/32"],
  default_allowed_cidrs:          ["127.0.0.0/8"],
  tags:                           { team: "shop" },
  hostname:                       "orders-x7k2p9qa.local.local.holdfast.test",
  "Node.hostname":                "orders-x7k2p9qa-1.local.local.holdfast.test",
  "ConnectionNode.hostname":      "orders-x7k2p9qa-1.local.local.holdfast.test",
  private_hostname:               "orders-x7k2p9qa.private.local.local.holdfast.test",
  "Node.private_hostname":        "orders-x7k2p9qa-1.private.local.local.holdfast.test",
  "ConnectionNode.private_hostname": "orders-x7k2p9qa-1.private.local.local.holdfast.test",
  addresses:                      ["203.0.113.17"],
  private_addresses:              ["10.77.0.5"],
  host:                           "orders-x7k2p9qa.local.local.holdfast.test",
  private_host:                   "orders-x7k2p9qa.private.local.local.holdfast.test",
  port:                           5432,
  user:                           "app_user",
  database:                       "defaultdb",
  uri:                            "postgresql://app_user@orders-x7k2p9qa.local.local.holdfast.test:5432/defaultdb?sslmode=verify-full",
  private_uri:                    "postgresql://app_user@orders-x7k2p9qa.private.local.local.holdfast.test:5432/defaultdb?sslmode=verify-full",
  ca_certificate:                 "-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----\n",
  "Listener.name":                "postgresql",
  audience:                       "public",
  tls:                            "required",
  since:                          "2030-01-31T12:00:02Z",
  "HealthCheck.name":             "liveness",
  component:                      "postgresql",
  "LogLine.level":                "info",
  "LogLine.message":              "checkpoint starting: time",
  has_more:                       false,
  "ListLogsResponse.next_cursor": "eyJhZnRlciI6IjE3In0",
  "ListEventsResponse.next_cursor": "eyJhZnRlciI6IjE3In0",
  username:                       "reports",
  "DatabaseUser.role":            "readonly",
  password:                       "kX2mT9vQ4wLr7bNc1ZfH",
  managed:                        true,
  "Database.name":                "archive",
  owner:                          "app_user",
  size_bytes:                     7_864_320,
  parameters:                     { work_mem: { value: "8MB", default: "4MB", status: "applied", reason: null } },
  "CatalogEngine.parameters":     [{
    name: "work_mem", type: "bytes", description: "Memory of one sort or hash before it goes to disk", default: "4MB",
    minimum: "64kB", maximum: "2097151kB", values: [], unit: "kB", needs_restart: false, versions: ["17", "18"],
  }],
  "CatalogMetric.name":           "cpu",
  "CatalogMetric.engines":        [],
  "CatalogMetric.kind":           "rate",
  "CatalogMetric.source":         "machine",
  meaning:                        "CPU time that the machine used, of what its plan gives it",
  metric:                         "cpu",
  unit:                           "percent",
  period:                         "1h",
  "InferenceUsage.period":        { from: "2030-02-01T00:00:00Z", to: "2030-02-15T10:30:00Z" },
  resolution:                     "1m",
  "MetricSeries.role":            "primary",
  "MetricSeries.points":          [[1_896_091_200, 12.5, 8, 21.25], [1_896_091_260, 13, 9.5, 18]],
  "AbsentMetric.metric":          "network_in",
  "AbsentMetric.reason":          "The machine shares its host's network, which counts the traffic of all machines together and of none alone.",
  timestamp:                      "2030-01-31T12:00:02Z",
  "Event.event_type":             "service.running",
  "Delivery.event_type":          "service.running",
  "Event.data":                   { service_name: "orders", status: "Running" },
  "Delivery.status":              "delivered",
  delivered_at:                   "2030-01-31T12:00:03Z",
  duration_ms:                    41,
  response_status:                204,
  event_id:                       "019a2f5e-8a10-7c55-b3d4-0a1b2c3d4e5f",
  webhook_id:                     "019a2f5e-9b20-7e66-8c12-5d4e3f2a1b0c",
  url:                            "https://example.com/hooks/holdfast",
  events:                         ["service.running", "service.error"],
  "ListAuthEventsResponse.events": [{ id: "019a2f60-77aa-7f3e-8d12-0c4b5a697812", type: "sign_in", occurred_at: "2030-02-01T08:30:00Z", user_id: null, client_id: null, ip: "203.0.113.7" }],
  "ListEventsResponse.events":    [{ id: service, event_type: "service.running", timestamp: "2030-01-31T12:00:02Z", data: { service_name: "orders", status: "Running" } }],
  secret:                         "whs_5b2f0c6d9e8a7f41",
  "CreatedApiKey.secret":         "N1x8vP0sLqT3dYh6kRb2WfZc5mJg7uAe9oXiHnQtKrs",
  "ApiKey.id":                    key,
  "CreatedApiKey.id":             key,
  scopes:                         ["services:read"],
  created_by:                     "user:anna",
  last_used_at:                   "2030-02-01T08:30:00Z",
  last_used_from:                 "203.0.113.7",
  token:                          "hft_019a2f5e7c1a7d3e9a563f0b8c2d4e61Qm4x8vP0sLqT3dYh6kRb2WfZ",
  setup_token:                    "Qm4x8vP0sLqT3dYh6kRb2WfZc5mJg7uAe9oXiHnQ",
  user_id:                        "anna",
  "CreatedUser.id":               "anna",
  "Me.id":                        key,
  "Me.name":                      key,
  "Me.kind":                      "api_key",
  "TokenResource.kind":           "managed-service",
  organization_id:                "019a2f5e-1a00-7b11-9c22-3d44e55f6677",
  "Organization.id":              "019a2f5e-1a00-7b11-9c22-3d44e55f6677",
  "MyOrganization.id":            "019a2f5e-1a00-7b11-9c22-3d44e55f6677",
  "Organization.name":            "Shop",
  "MyOrganization.name":          "Shop",
  actor:                          `api_key:${key}`,
  action:                         "managed-service.create",
  object_kind:                    "managed-service",
  object_id:                      service,
  source:                         "203.0.113.7",
  result:                         "ok",
  request_id:                     "6f1c2a9e-0b7d-4c3e-8a5f-1d2e3c4b5a69",
};

/**
 * An example response: every field of the message with its value from `fieldExamples`, else a value of its type. A
 * nullable field without an example is null.
 */
export function responseExample(message: DescMessage): unknown {
  return exampleOf(message, []);
}

function exampleOf(message: DescMessage, around: readonly DescMessage[]): unknown {
  const inside = [...around, message];
  return Object.fromEntries(message.fields.map((field) => [field.name, fieldExample(field, inside)]));
}

function fieldExample(field: DescField, around: readonly DescMessage[]): unknown {
  const example = fieldExamples[`${field.parent.name}.${field.name}`] ?? fieldExamples[field.name];
  if (example !== undefined) return example;
  if (field.fieldKind === "message" && rulesOf(field).bare) return [single(bareItems(field.message), around)];
  if (field.fieldKind === "list") return [single(field, around)];
  if (field.fieldKind === "map") return {};
  return isNullable(field) ? null : single(field, around);
}

function single(field: DescField, around: readonly DescMessage[]): unknown {
  const { message } = field;
  if (message !== undefined) {
    if (message.typeName === "google.protobuf.Timestamp") return "2030-01-31T12:00:00Z";
    if (message.typeName.startsWith("google.protobuf.")) return {};
    return around.includes(message) ? null : exampleOf(message, around);
  }
  if (field.enum !== undefined) return field.enum.values.find(({ number }) => number !== 0)?.jsonName ?? null;
  if (field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES) return field.name.replaceAll("_", "-");
  return field.scalar === ScalarType.BOOL ? false : 1;
}

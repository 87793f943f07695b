import { type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "@holdfast/proto/google/api/annotations_pb.ts";
import {
  AuthorityService,
  ControlService,
  FleetService,
  OperatorService,
  OrganizationService as OrganizationAdminService,
} from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { AgentRolloutService } from "@holdfast/proto/holdfast/admin/v1/agent_rollout_pb.ts";
import { FailoverService } from "@holdfast/proto/holdfast/admin/v1/failover_pb.ts";
import { InferenceProcessService } from "@holdfast/proto/holdfast/admin/v1/inference_pb.ts";
import { HostService } from "@holdfast/proto/holdfast/admin/v1/host_pb.ts";
import { ApiKeyService } from "@holdfast/proto/holdfast/v1/api_key_pb.ts";
import { AppAuthService } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { AppService } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { AuditService } from "@holdfast/proto/holdfast/v1/audit_pb.ts";
import { BackupService } from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import { AlertService } from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import { CatalogService } from "@holdfast/proto/holdfast/v1/catalog_pb.ts";
import { ChannelService } from "@holdfast/proto/holdfast/v1/channel_pb.ts";
import { ConfigurationService } from "@holdfast/proto/holdfast/v1/configuration_pb.ts";
import { DatabaseService } from "@holdfast/proto/holdfast/v1/database_pb.ts";
import { DatabaseUserService } from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import { EventService } from "@holdfast/proto/holdfast/v1/event_pb.ts";
import { BackupService as BackupAdminService } from "@holdfast/proto/holdfast/admin/v1/backup_pb.ts";
import { MaintenanceService as MaintenanceAdminService } from "@holdfast/proto/holdfast/admin/v1/maintenance_pb.ts";
import { InferenceService } from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { MaintenanceService } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import { ManagedServiceService } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { MetricsExportService } from "@holdfast/proto/holdfast/v1/metrics_export_pb.ts";
import { MetricService } from "@holdfast/proto/holdfast/v1/metric_pb.ts";
import { HealthService } from "@holdfast/proto/holdfast/v1/health_pb.ts";
import { QueryConsoleService } from "@holdfast/proto/holdfast/v1/query_console_pb.ts";
import { QueryService } from "@holdfast/proto/holdfast/v1/query_pb.ts";
import { NodeService } from "@holdfast/proto/holdfast/v1/node_pb.ts";
import { OperationService } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { type MethodRules, rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { OrganizationService } from "@holdfast/proto/holdfast/v1/organization_pb.ts";
import { PipelineService } from "@holdfast/proto/holdfast/v1/pipeline_pb.ts";
import { ProjectService } from "@holdfast/proto/holdfast/v1/project_pb.ts";
import { StackService } from "@holdfast/proto/holdfast/v1/stack_pb.ts";
import { QueueService } from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { TaskService } from "@holdfast/proto/holdfast/v1/task_pb.ts";
import { TokenService } from "@holdfast/proto/holdfast/v1/token_pb.ts";
import { UserService } from "@holdfast/proto/holdfast/v1/user_pb.ts";
import { WebhookService } from "@holdfast/proto/holdfast/v1/webhook_pb.ts";

/** Services for organizations, over REST and gRPC. */
export const organizationServices: readonly DescService[] = [
  ApiKeyService,
  AppAuthService,
  AppService,
  AuditService,
  OrganizationService,
  TokenService,
  UserService,
  BackupService,
  CatalogService,
  ConfigurationService,
  DatabaseService,
  DatabaseUserService,
  EventService,
  InferenceService,
  MaintenanceService,
  ManagedServiceService,
  HealthService,
  MetricService,
  NodeService,
  OperationService,
  QueryConsoleService,
  QueryService,
  QueueService,
  ProjectService,
  StackService,
  PipelineService,
  TaskService,
  WebhookService,
  AlertService,
  ChannelService,
  MetricsExportService,
];

/** Services for platform operators, over gRPC. */
export const platformServices: readonly DescService[] = [
  AgentRolloutService,
  AuthorityService,
  FleetService,
  ControlService,
  FailoverService,
  InferenceProcessService,
  HostService,
  MaintenanceAdminService,
  BackupAdminService,
  OrganizationAdminService,
  OperatorService,
];

/** One method with its REST route, as its descriptor declares. */
export interface RestMethod {
  readonly method: DescMethod;
  readonly rules: MethodRules;
  readonly verb: string;
  /** "/managed-services/{id}". */
  readonly path: string;
}

export const restMethods: readonly RestMethod[] = organizationServices.flatMap(({ methods }) =>
  methods.flatMap((method) => {
    if (!hasOption(method, http)) return [];
    const { pattern } = getOption(method, http);
    if (pattern.case === undefined || pattern.case === "custom") throw new Error(`${method} has no usual verb`);
    return [{ method, rules: getOption(method, rules), verb: pattern.case.toUpperCase(), path: pattern.value }];
  }),
);

/** The method that serves a verb on a path, if any: a literal segment matches before a variable. */
export function findRestMethod(verb: string, path: string): RestMethod | undefined {
  const segments = (path.split("?")[0] ?? "").split("/");
  const variables = (candidate: RestMethod) => candidate.path.split("{").length;
  const found = restMethods.filter((candidate) => {
    if (candidate.verb !== verb) return false;
    const pathSegments = candidate.path.split("/");
    return (
      pathSegments.length === segments.length &&
      pathSegments.every((part, i) => part.startsWith("{") || part === segments[i])
    );
  });
  return found.toSorted((a, b) => variables(a) - variables(b))[0];
}

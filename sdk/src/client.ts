import type { AuditLogEntry, Catalog, ManagedService, Me, Operation, ServiceStatus } from "./answers.ts";
import type { AuditFilter } from "./inputs.ts";
import { Alerts } from "./alerts.ts";
import { Backups } from "./backups.ts";
import { Channels } from "./channels.ts";
import { DatabaseUsers } from "./database-users.ts";
import { Databases } from "./databases.ts";
import { Events } from "./events.ts";
import { Exports } from "./exports.ts";
import { ApiKeys, Apps, Auth, Configurations, Members, Operations, Organizations, Tasks, Tokens } from "./methods.ts";
import { ServiceMetrics } from "./metrics.ts";
import { Nodes } from "./nodes.ts";
import { Inference } from "./inference.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { Pipelines } from "./pipelines.ts";
import { Projects } from "./projects.ts";
import { Queries } from "./queries.ts";
import { ServiceHealth } from "./service-health.ts";
import { Services } from "./services.ts";
import { Queues } from "./queues.ts";
import { Stacks } from "./stacks.ts";
import { type CallOptions, createTransport, type TransportOptions } from "./transport.ts";
import { Users } from "./users.ts";
import { waitFor, waitForOperation, type OperationWaitOptions, type WaitOptions } from "./wait.ts";
import { Webhooks } from "./webhooks.ts";

/**
 * The API of one installation. Each method throws an ApiError when the API refuses, and ConnectionFailed without an
 * answer.
 */
export interface Client {
  readonly services: Services;
  readonly operations: Operations;
  readonly backups: Backups;
  readonly tasks: Tasks;
  readonly apps: Apps;
  /** Sign-in for an app. */
  readonly auth: Auth;
  readonly queues: Queues;
  readonly databases: Databases;
  readonly databaseUsers: DatabaseUsers;
  readonly configuration: Configurations;
  readonly events: Events;
  readonly metrics: ServiceMetrics;
  readonly health: ServiceHealth;
  readonly queries: Queries;
  readonly alerts: Alerts;
  readonly channels: Channels;
  readonly webhooks: Webhooks;
  /** Metrics and logs of services, pushed to where a team already looks. */
  readonly exports: Exports;
  readonly inference: Inference;
  /** Resources that are described in one document. */
  readonly projects: Projects;
  /** Resources of a template, launched at a cost that was accepted. */
  readonly stacks: Stacks;
  /** Database services that work together, by a template. */
  readonly pipelines: Pipelines;
  readonly organizations: Organizations;
  readonly members: Members;
  /** Replicas of a service, and which of them is the primary. */
  readonly nodes: Nodes;
  readonly users: Users;
  readonly apiKeys: ApiKeys;
  readonly tokens: Tokens;
  /** What can be created here, and for how much. */
  catalog(options?: CallOptions): Promise<Catalog>;
  /** The caller: user, key or token, organization and rights. */
  me(options?: CallOptions): Promise<Me>;
  /** Calls and refusals with their callers, newest first. */
  auditLog(filter?: AuditFilter, options?: ListOptions): List<AuditLogEntry>;
  /**
   * Waits until the service, or the one of that id, has the status and no operation is left. Throws ServiceFailed when
   * it comes to Error (unless that was asked for), OperationFailed, WaitTimedOut, or the signal's reason.
   */
  waitFor(service: ManagedService | string, target: ServiceStatus, options?: WaitOptions): Promise<ManagedService>;
  /** Waits until nothing is left of the service. */
  waitFor(service: ManagedService | string, target: "gone", options?: WaitOptions): Promise<undefined>;
  /**
   * Waits until the operation, or the one of that id, is over, as of a user, a database or a configuration that its
   * engine is slow to take. Throws OperationFailed, WaitTimedOut, or the signal's reason.
   */
  waitForOperation(operation: Operation | string, options?: OperationWaitOptions): Promise<Operation>;
  /** A method of holdfast.admin.v1, for platform operators: "FleetService", "ListMachines". */
  admin<T>(service: string, method: string, request?: object, options?: CallOptions): Promise<T>;
}

/**
 * A client for browsers and everything else that has `fetch`; it asks the network for nothing before its first call.
 */
export function createClient(options: TransportOptions): Client {
  const transport = createTransport(options);
  const services = new Services(transport);
  const operations = new Operations(transport);
  return {
    services,
    operations,
    nodes: new Nodes(transport),
    backups: new Backups(transport),
    tasks: new Tasks(transport),
    apps: new Apps(transport),
    auth: new Auth(transport),
    queues: new Queues(transport),
    databases: new Databases(transport),
    databaseUsers: new DatabaseUsers(transport),
    configuration: new Configurations(transport),
    events: new Events(transport),
    metrics: new ServiceMetrics(transport),
    health: new ServiceHealth(transport),
    queries: new Queries(transport),
    alerts: new Alerts(transport),
    channels: new Channels(transport),
    webhooks: new Webhooks(transport),
    exports: new Exports(transport),
    inference: new Inference(transport),
    projects: new Projects(transport),
    stacks: new Stacks(transport),
    pipelines: new Pipelines(transport),
    organizations: new Organizations(transport),
    members: new Members(transport),
    users: new Users(transport),
    apiKeys: new ApiKeys(transport),
    tokens: new Tokens(transport),
    catalog: (call) => transport.request("GET", "/catalog", call),
    me: (call) => transport.request("GET", "/me", call),
    auditLog: (filter, list) => listOf(transport, "/audit-log", "entries", list, { ...filter }),
    waitFor: ((service, target, wait) => waitFor({ services, operations }, service, target, wait)) as Client["waitFor"],
    waitForOperation: (operation, wait) => waitForOperation(operations, operation, wait),
    admin: (service, method, request = {}, call = {}) =>
      transport.request("POST", `/holdfast.admin.v1.${service}/${method}`, {
        ...call,
        body: request,
        headers: { "connect-protocol-version": "1" },
        single: !method.startsWith("List"),
      }),
  };
}

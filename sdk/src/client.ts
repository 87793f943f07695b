import { Alerts, Channels } from "./alerts.ts";
import { Apps } from "./apps.ts";
import { Backups } from "./backups.ts";
import { Databases, DatabaseUsers } from "./databases.ts";
import { Events } from "./events.ts";
import { Exports } from "./exports.ts";
import { Files } from "./files.ts";
import { Inference } from "./inference.ts";
import {
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
import { ServiceMetrics } from "./metrics.ts";
import { Nodes } from "./nodes.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { Pipelines } from "./pipelines.ts";
import { Projects } from "./projects.ts";
import { Queries } from "./queries.ts";
import { Queues } from "./queues.ts";
import type { AuditFilter } from "./requests.ts";
import type { AuditLogEntry, Catalog, ManagedService, Me, Operation, ServiceStatus } from "./responses.ts";
import { ServiceHealth } from "./service-health.ts";
import { Services } from "./services.ts";
import { Stacks } from "./stacks.ts";
import { type CallOptions, createTransport, type TransportOptions } from "./transport.ts";
import { Users } from "./users.ts";
import { type DeletedTarget, type OperationWaitOptions, type WaitOptions, waitFor, waitForOperation } from "./wait.ts";
import { Webhooks } from "./webhooks.ts";

/**
 * The API of one installation. Each method throws an ApiError for an error response, and ConnectionFailed without a
 * response.
 */
export interface Client {
  readonly services: Services;
  /** Object storage. */
  readonly files: Files;
  readonly operations: Operations;
  readonly backups: Backups;
  readonly tasks: Tasks;
  readonly apps: Apps;
  /** Sign-in of apps' users. */
  readonly auth: Auth;
  readonly queues: Queues;
  readonly databases: Databases;
  readonly databaseUsers: DatabaseUsers;
  readonly indices: Indices;
  readonly topics: Topics;
  readonly consumerGroups: ConsumerGroups;
  readonly configuration: Configurations;
  readonly events: Events;
  readonly metrics: ServiceMetrics;
  readonly health: ServiceHealth;
  readonly queries: Queries;
  readonly alerts: Alerts;
  readonly channels: Channels;
  readonly webhooks: Webhooks;
  /** Exports of metrics and logs to monitoring systems. */
  readonly exports: Exports;
  readonly inference: Inference;
  /** Resources described in one document. */
  readonly projects: Projects;
  /** Resources created from a template at an accepted cost. */
  readonly stacks: Stacks;
  /** Database services created together from a template. */
  readonly pipelines: Pipelines;
  readonly organizations: Organizations;
  readonly members: Members;
  /** Nodes of a service: the primary and its replicas. */
  readonly nodes: Nodes;
  readonly users: Users;
  readonly apiKeys: ApiKeys;
  readonly tokens: Tokens;
  /** Sessions of users in browsers. */
  readonly sessions: Sessions;
  /** Engines, plans, storage tiers, zones and prices. */
  catalog(options?: CallOptions): Promise<Catalog>;
  /** The caller: user, API key or token, with organization and scopes. */
  me(options?: CallOptions): Promise<Me>;
  /** Changes and refused changes with their callers, newest first. */
  auditLog(filter?: AuditFilter, options?: ListOptions): List<AuditLogEntry>;
  /**
   * Waits until the service has the status and no operation in progress. Accepts a service, also a files service, or
   * the id of a database service; `files.waitFor` accepts ids of files services. Throws ServiceFailed if its status
   * becomes Error (unless Error is the target), OperationFailed, WaitTimedOut, or the signal's reason.
   */
  waitFor(service: ManagedService | string, target: ServiceStatus, options?: WaitOptions): Promise<ManagedService>;
  /** Waits until the service is deleted. */
  waitFor(service: ManagedService | string, target: DeletedTarget, options?: WaitOptions): Promise<undefined>;
  /**
   * Waits until the operation is completed. Accepts an operation or its id. Changes of users, databases and
   * configuration return one if the engine did not apply them in time. Throws OperationFailed, WaitTimedOut, or the
   * signal's reason.
   */
  waitForOperation(operation: Operation | string, options?: OperationWaitOptions): Promise<Operation>;
  /** Calls a method of holdfast.admin.v1, for platform operators, such as `admin("FleetService", "ListMachines")`. */
  admin<T>(service: string, method: string, request?: object, options?: CallOptions): Promise<T>;
}

/** Creates a client for browsers and all runtimes with `fetch`. It sends nothing before its first call. */
export function createClient(options: TransportOptions): Client {
  const transport = createTransport(options);
  const services = new Services(transport);
  const files = new Files(transport);
  const operations = new Operations(transport);
  return {
    services,
    files,
    operations,
    nodes: new Nodes(transport),
    backups: new Backups(transport),
    tasks: new Tasks(transport),
    apps: new Apps(transport),
    auth: new Auth(transport),
    queues: new Queues(transport),
    databases: new Databases(transport),
    databaseUsers: new DatabaseUsers(transport),
    indices: new Indices(transport),
    topics: new Topics(transport),
    consumerGroups: new ConsumerGroups(transport),
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
    sessions: new Sessions(transport),
    catalog: (call) => transport.request("GET", "/catalog", call),
    me: (call) => transport.request("GET", "/me", call),
    auditLog: (filter, list) => listOf(transport, "/audit-log", "entries", list, { ...filter }),
    waitFor: ((service, target, wait) => {
      const isFiles = typeof service !== "string" && service.database_type === "files";
      return waitFor({ services: isFiles ? files : services, operations }, service, target, wait);
    }) as Client["waitFor"],
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

import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampNow } from "@bufbuild/protobuf/wkt";
import { type Call, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { CatalogService } from "@holdfast/proto/holdfast/v1/catalog_pb.ts";
import { ConfigurationService, ParameterStatus } from "@holdfast/proto/holdfast/v1/configuration_pb.ts";
import { DatabaseService } from "@holdfast/proto/holdfast/v1/database_pb.ts";
import { DatabaseUserRole, DatabaseUserService } from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import {
  HealthStatus,
  LogLevel,
  type ManagedService,
  ManagedServiceSchema,
  ManagedServiceService,
  ManagedServiceStatus,
  NodeRole,
  NodeStatus,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { OperationService, OperationStatus } from "@holdfast/proto/holdfast/v1/operation_pb.ts";

/** State of the services, for tests to inspect. */
export interface InMemoryState {
  readonly services: Map<string, ManagedService>;
  readonly logs: string[];
  creations: number;
  /** Number of lookups of a service's summary. */
  summaries: number;
  /** Replaces the unit of work, which stores the response with the change. */
  keep: (call: Call, response: ManagedService) => Promise<void>;
  /** Hook that each creation awaits. */
  beforeCreate: (call: Call) => Promise<void>;
}

/** The public services over a map: enough behavior to produce every kind of response. */
export function createInMemoryServices(): { state: InMemoryState; services: ServedService[] } {
  const state: InMemoryState = {
    services: new Map(),
    logs: [],
    creations: 0,
    summaries: 0,
    keep: async () => undefined,
    beforeCreate: async () => undefined,
  };

  const find = (id: string): ManagedService => {
    const service = state.services.get(id);
    if (service === undefined) throw new HoldfastError("SERVICE_NOT_FOUND", "There is no such service.");
    return service;
  };
  const changed = (service: ManagedService, call: Call): ManagedService => {
    call.setHeader("Holdfast-Revision", "42");
    call.setHeader("ETag", '"1"');
    return service;
  };

  const managed = serve(ManagedServiceService, {
    async createManagedService(request, call) {
      await state.beforeCreate(call);
      if ([...state.services.values()].some((service) => service.name === request.name)) {
        throw new HoldfastError("NAME_TAKEN", `${request.name} is taken.`);
      }
      state.creations += 1;
      const service = newService(request.name, request.databaseType, request.allowedCidrs?.values ?? ["127.0.0.0/8"]);
      service.tags = request.tags;
      if (request.ttlHours !== undefined) service.ttlHours = request.ttlHours;
      await state.keep(call, service);
      state.services.set(service.id, service);
      return changed(service, call);
    },
    listManagedServices: async ({ name, limit }) => ({
      services: [...state.services.values()]
        .filter((service) => name === undefined || service.name === name)
        .slice(0, limit ?? 50),
    }),
    async getManagedService({ id }, call) {
      call.setHeader("ETag", '"1"');
      return find(id);
    },
    async updateManagedService(request, call) {
      const service = find(request.id);
      if (call.ifMatch !== undefined && call.ifMatch !== '"1"')
        throw new HoldfastError("PRECONDITION_FAILED", "It has changed.");
      const paths = new Set(request.updateMask?.paths);
      if (paths.has("name") && request.name !== undefined) service.name = request.name;
      if (paths.has("tags")) service.tags = request.tags;
      if (paths.has("ttl_hours")) service.ttlHours = request.ttlHours;
      if (paths.has("allowed_cidrs")) service.allowedCidrs = request.allowedCidrs?.values ?? [];
      return changed(service, call);
    },
    startManagedService: async ({ id }, call) => changed(find(id), call),
    stopManagedService: async ({ id }) => {
      const detail = `${find(id).name} is busy.`;
      throw new HoldfastError("OPERATION_IN_PROGRESS", detail, {
        members: { service_status: "Pending", operation: null },
      });
    },
    restartManagedService: async () => {
      throw new TypeError("a secret cause");
    },
    resizeManagedService: async ({ id, planName }, call) => {
      const service = find(id);
      service.planName = planName;
      return changed(service, call);
    },
    expandStorage: async ({ id, storageSizeGb }, call) => {
      const service = find(id);
      service.storageSizeGb = storageSizeGb;
      return changed(service, call);
    },
    enableWrites: async ({ id }, call) => changed(find(id), call),
    async deleteManagedService({ id }, call) {
      const service = find(id);
      state.services.delete(id);
      return changed(service, call);
    },
    async getConnection({ id }) {
      const { hostname, port } = find(id);
      return {
        host: hostname,
        port,
        user: "app_user",
        database: "defaultdb",
        uri: `postgresql://app_user@${hostname}:${port}/defaultdb`,
        caCertificate: "PEM",
      };
    },
    listNodes: async ({ id }) => ({ nodes: find(id).nodes }),
    async listLogs({ id, cursor, limit, newest }) {
      const { nodes } = find(id);
      const first = newest === true ? Math.max(0, state.logs.length - (limit ?? 50)) : 0;
      const from = Number(cursor ?? first);
      const lines = state.logs.slice(from, from + (limit ?? 50));
      const next = from + lines.length;
      return {
        lines: lines.map((message) => ({
          time: timestampNow(),
          nodeId: nodes[0]?.id ?? "",
          component: "engine",
          level: LogLevel.INFO,
          message,
        })),
        nextCursor: String(next),
        hasMore: next < state.logs.length,
      };
    },
    async getTaskSummary({ id }) {
      state.summaries += 1;
      return { status: find(id).status, progressPct: 100 };
    },
  });

  const users = serve(DatabaseUserService, {
    listDatabaseUsers: async () => ({ users: [] }),
    createDatabaseUser: async ({ serviceId, username, role }) => ({
      serviceId: find(serviceId).id,
      username,
      role,
      managed: true,
    }),
    getDatabaseUser: async ({ serviceId, username }) => ({ serviceId, username, role: DatabaseUserRole.CUSTOM }),
    updateDatabaseUser: async ({ serviceId, username, replication = false }) => ({
      serviceId,
      username,
      role: DatabaseUserRole.CUSTOM,
      replication,
    }),
    deleteDatabaseUser: async () => ({}),
    revealPassword: async ({ serviceId, username }) => ({ serviceId, username, password: randomUUID() }),
    resetPassword: async ({ serviceId, username }) => ({ serviceId, username, password: randomUUID() }),
  });
  const databases = serve(DatabaseService, {
    listDatabases: async ({ serviceId }) => ({
      databases: [{ serviceId, name: "defaultdb", owner: "app_user", sizeBytes: 2n ** 40n }],
    }),
    createDatabase: async ({ serviceId, name }) => ({ serviceId, name, owner: "app_user" }),
    deleteDatabase: async () => ({}),
  });
  const configuration = serve(ConfigurationService, {
    getConfiguration: async () => ({ parameters: {} }),
    updateConfiguration: async ({ parameters }) => ({
      parameters: Object.fromEntries(
        Object.entries(parameters).map(([name, { kind }]) => [
          name,
          {
            value: kind.case === "stringValue" ? kind.value : "",
            default: "0",
            status: ParameterStatus.PENDING_RESTART,
          },
        ]),
      ),
    }),
  });
  const operations = serve(OperationService, {
    getOperation: async () => {
      throw new HoldfastError("STORE_UNAVAILABLE", "The store does not respond.");
    },
    listOperations: async ({ serviceId }) => ({
      operations: [
        {
          id: "o",
          serviceId,
          type: "create",
          status: OperationStatus.COMPLETED,
          progressPct: 100,
          createdAt: timestampFromMs(0),
        },
      ],
    }),
  });
  const catalog = serve(CatalogService, { getCatalog: async () => ({ currency: "EUR", limits: {}, files: {} }) });
  return { state, services: [managed, users, databases, configuration, operations, catalog] };
}

function newService(name: string, databaseType: string, allowedCidrs: string[]): ManagedService {
  const id = randomUUID();
  const hostname = `${name}-abc.local.holdfast.test`;
  return create(ManagedServiceSchema, {
    id,
    name,
    status: ManagedServiceStatus.PENDING,
    databaseType,
    version: "17",
    planName: "dev",
    storageSizeGb: 1,
    storageTier: "standard",
    zone: "local",
    allowedCidrs,
    hostname,
    port: 5432,
    nodes: [{ id: randomUUID(), role: NodeRole.PRIMARY, status: NodeStatus.PROVISIONING, hostname, zone: "local" }],
    health: { status: HealthStatus.UNKNOWN, checks: [] },
    createdAt: timestampNow(),
    updatedAt: timestampNow(),
  });
}

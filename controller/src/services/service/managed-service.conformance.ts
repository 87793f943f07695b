import {
  type CreateManagedServiceRequestSchema,
  type ListLogsRequestSchema,
  type ListManagedServicesRequestSchema,
  ManagedServiceService,
  type UpdateManagedServiceRequestSchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { callerScoped, casesOf, type Contract, objectScoped, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls, time } from "@holdfast/testing/contract/sdk-calls.ts";

/** An input whose choices are messages, as in a request. */
type WithChoices<Input> = Omit<Input, "pooler" | "storage_autoscale"> & {
  readonly pooler?: { readonly [K in keyof sdk.PoolerChoice]-?: NonNullable<sdk.PoolerChoice[K]> | null } | undefined;
  readonly storage_autoscale?:
    | { readonly [K in keyof sdk.StorageAutoscaleChoice]-?: NonNullable<sdk.StorageAutoscaleChoice[K]> | null }
    | undefined;
};

const byId = objectScoped(({ serviceId }) => ({ id: serviceId }));
const service = { name: "n", database_type: "postgresql", plan_name: "p", storage_size_gb: 1 };
const choices = {
  version: "17",
  storage_tier: "s",
  zone: "z",
  parameters: {},
  node_count: 1,
  replication_mode: "async",
  pooler: { enabled: true, mode: "transaction" },
  private_listener: true,
  layout_mode: "multi-db",
  server_collation: "Latin1_General_BIN2",
  storage_autoscale: { enabled: true, max_gb: 2 },
};
const change = {
  allowed_cidrs: [],
  ttl_hours: 1,
  deletion_protection: true,
  tags: {},
  maintenance_window: { day: "sunday", hour: 3 },
} as const;
const pooler = { pooler: { enabled: false, mode: "session" }, storage_autoscale: { enabled: false } } as const;
const sizes = { plan_name: "p", storage_size_gb: 1 } as const;

export default {
  authorization: [
    casesOf(ManagedServiceService, {
      createManagedService: callerScoped(() => ({
        name: "new",
        database_type: "postgresql",
        plan_name: "tier-1",
        storage_size_gb: 1,
      })),
      listManagedServices: ofCaller,
      getManagedService: byId,
      updateManagedService: objectScoped(({ serviceId }) => ({ id: serviceId, name: "stolen" })),
      startManagedService: byId,
      stopManagedService: byId,
      restartManagedService: byId,
      resizeManagedService: objectScoped(({ serviceId }) => ({ id: serviceId, plan_name: "tier-2" })),
      expandStorage: objectScoped(({ serviceId }) => ({ id: serviceId, storage_size_gb: 2 })),
      enableWrites: byId,
      deleteManagedService: byId,
      getConnection: byId,
      listNodes: byId,
      listLogs: byId,
      getTaskSummary: byId,
    }),
  ],
  sdk: [
    sdkCalls(ManagedServiceService, {
      createManagedService: (c) => c.services.create({ ...service, ...choices, ...change }),
      listManagedServices: (c) =>
        c.services.list({ name: "n", status: "Running", database_type: "valkey", tag: "a:b", deleted: true }, page),
      getManagedService: (c) => c.services.get("i"),
      updateManagedService: (c) =>
        c.services.update("i", {
          name: "n",
          replication_mode: "async",
          private_listener: false,
          ...change,
          ...pooler,
          ...sizes,
        }),
      startManagedService: (c) => c.services.command("i", "start"),
      stopManagedService: (c) => c.services.command("i", "stop"),
      restartManagedService: (c) => c.services.command("i", "restart"),
      resizeManagedService: (c) => c.services.resize("i", "p"),
      expandStorage: (c) => c.services.expandStorage("i", 1),
      enableWrites: (c) => c.services.enableWrites("i"),
      deleteManagedService: (c) => c.services.delete("i", { skipFinalBackup: true }),
      getConnection: (c) => c.services.connection("i"),
      listNodes: (c) => c.services.nodes("i", page),
      listLogs: (c) => {
        const filter = {
          since: time,
          level: "info",
          node_id: "n",
          contains: "x",
          component: "slow",
          newest: true,
        } as const;
        return c.services.logs("i", filter, page);
      },
      getTaskSummary: (c) => c.services.taskSummary("i"),
    }),
  ],
  sdkInputs: sameInputs<{
    newService: SameInput<WithChoices<sdk.NewService>, typeof CreateManagedServiceRequestSchema>;
    serviceChange: SameInput<WithChoices<sdk.ServiceChange>, typeof UpdateManagedServiceRequestSchema>;
    serviceFilter: SameInput<sdk.ServiceFilter, typeof ListManagedServicesRequestSchema>;
    logFilter: SameInput<sdk.LogFilter, typeof ListLogsRequestSchema>;
  }>(),
  listBounds: {
    "holdfast.v1.Connection.listeners": "one for each way in that its engine has",
    "holdfast.v1.Connection.nodes": "nodes of one service",
    "holdfast.v1.Connection.sasl_mechanisms": "mechanisms of the engine",
    "holdfast.v1.Connection.private_sasl_mechanisms": "mechanisms of the engine",
    "holdfast.v1.ConnectionNode.addresses": "one for each family",
    "holdfast.v1.ConnectionNode.private_addresses": "one for each family",
    "holdfast.v1.Health.checks": "checks of one service",
    "holdfast.v1.ManagedService.allowed_cidrs": "the members of the request",
    "holdfast.v1.ManagedService.nodes": "nodes of one service",
    "holdfast.v1.ManagedService.pending_updates": "an image and a restart",
    "holdfast.v1.ManagedService.tags": "the members of the request",
    "holdfast.v1.Replication.standby_names": "4 replicas",
    "holdfast.v1.ServiceBackups.gaps": "20",
  },
  nameScopes: {
    "engine-task.ts": "service: names in its engine",
    "managed-service-api.ts": "organization",
    "service-creation.ts": "organization",
  },
} satisfies Contract;

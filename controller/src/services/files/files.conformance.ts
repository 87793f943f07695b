import {
  type CreateFilesKeyRequestSchema,
  type CreateFilesServiceRequestSchema,
  FilesService,
  type ListFilesServicesRequestSchema,
  type UpdateFilesServiceRequestSchema,
} from "@holdfast/proto/holdfast/v1/files_pb.ts";
import {
  callerScoped,
  casesOf,
  type Contract,
  objectScoped,
  ofCaller,
  ofService,
} from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

/** An input whose choices are messages, as in a request. */
type WithChoice<Input> = Omit<Input, "storage_autoscale"> & {
  readonly storage_autoscale?:
    | { readonly [K in keyof sdk.StorageAutoscaleChoice]-?: NonNullable<sdk.StorageAutoscaleChoice[K]> | null }
    | undefined;
};

const byId = objectScoped(({ serviceId }) => ({ id: serviceId }));
const choices = {
  allowed_cidrs: [],
  ttl_hours: 1,
  deletion_protection: true,
  tags: {},
  maintenance_window: { day: "sunday", hour: 3 },
  storage_autoscale: { enabled: true, max_gb: 2 },
} as const;
const service = { name: "n", plan_name: "p", storage_size_gb: 1, storage_tier: "s", zone: "z" };

export default {
  authorization: [
    casesOf(FilesService, {
      createFilesService: callerScoped(() => ({ name: "new", plan_name: "tier-1", storage_size_gb: 1 })),
      listFilesServices: ofCaller,
      getFilesService: byId,
      updateFilesService: objectScoped(({ serviceId }) => ({ id: serviceId, name: "stolen" })),
      startFilesService: byId,
      stopFilesService: byId,
      restartFilesService: byId,
      resizeFilesService: objectScoped(({ serviceId }) => ({ id: serviceId, plan_name: "tier-2" })),
      expandFilesStorage: objectScoped(({ serviceId }) => ({ id: serviceId, storage_size_gb: 2 })),
      deleteFilesService: byId,
      undeleteFilesService: byId,
      getFilesConnection: byId,
      listFilesKeys: ofService,
      createFilesKey: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "thief" })),
      deleteFilesKey: objectScoped(({ serviceId }) => ({ service_id: serviceId, key_id: serviceId })),
    }),
  ],
  sdk: [
    sdkCalls(FilesService, {
      createFilesService: (c) => c.files.create({ ...service, ...choices }),
      listFilesServices: (c) => c.files.list({ name: "n", status: "Running", tag: "a:b", deleted: true }, page),
      getFilesService: (c) => c.files.get("i"),
      updateFilesService: (c) => c.files.update("i", { name: "n", plan_name: "p", storage_size_gb: 1, ...choices }),
      startFilesService: (c) => c.files.start("i"),
      stopFilesService: (c) => c.files.stop("i"),
      restartFilesService: (c) => c.files.restart("i"),
      resizeFilesService: (c) => c.files.resize("i", "p"),
      expandFilesStorage: (c) => c.files.expandStorage("i", 1),
      deleteFilesService: (c) => c.files.delete("i", { permanently: true }),
      undeleteFilesService: (c) => c.files.undelete("i", "n"),
      getFilesConnection: (c) => c.files.connection("i"),
      listFilesKeys: (c) => c.files.keys("i", page),
      createFilesKey: (c) => c.files.createKey("i", { name: "n", access: "readonly" }),
      deleteFilesKey: (c) => c.files.deleteKey("i", "k"),
    }),
  ],
  sdkInputs: sameInputs<{
    newFilesService: SameInput<WithChoice<sdk.NewFilesService>, typeof CreateFilesServiceRequestSchema>;
    filesServiceChange: SameInput<WithChoice<sdk.FilesServiceChange>, typeof UpdateFilesServiceRequestSchema>;
    filesServiceFilter: SameInput<sdk.FilesServiceFilter, typeof ListFilesServicesRequestSchema>;
    newFilesKey: SameInput<sdk.NewFilesKey, typeof CreateFilesKeyRequestSchema>;
  }>(),
  nameScopes: {
    "files-key-changes.ts": "service: names of its keys",
  },
} satisfies Contract;

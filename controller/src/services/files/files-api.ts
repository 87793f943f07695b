import { create } from "@bufbuild/protobuf";
import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { UndeleteManagedServiceRequestSchema } from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import {
  type CreateFilesServiceRequest,
  FilesService,
  type UpdateFilesServiceRequest,
} from "@holdfast/proto/holdfast/v1/files_pb.ts";
import {
  type CreateManagedServiceRequest,
  CreateManagedServiceRequestSchema,
  DeleteManagedServiceRequestSchema,
  ExpandStorageRequestSchema,
  GetManagedServiceRequestSchema,
  ListManagedServicesRequestSchema,
  ResizeManagedServiceRequestSchema,
  RestartManagedServiceRequestSchema,
  StartManagedServiceRequestSchema,
  StopManagedServiceRequestSchema,
  type UpdateManagedServiceRequest,
  UpdateManagedServiceRequestSchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { createBackupAccess } from "../backup/backup-access.ts";
import { createRestoreHandlers, type RestoreApiDeps } from "../backup/restore/restore-api.ts";
import { createServiceHandlers, type ManagedServiceApiDeps } from "../service/managed-service-api.ts";
import { filesConnectionOf } from "./files-connection.ts";
import { createKeyHandlers, type FilesKeysDeps } from "./files-keys.ts";

export type FilesApiDeps = Omit<ManagedServiceApiDeps, "family"> &
  FilesKeysDeps &
  RestoreApiDeps & {
    /** Resolves when the hosts are known, on which the port of a new service depends. */
    readonly hostsReported: (signal: AbortSignal) => Promise<void>;
  };

/**
 * The RPCs of files services. They are managed services of another family, so the calls about a service itself are
 * those of databases: only requests and paths differ.
 */
export function createFilesApi(deps: FilesApiDeps): ServedService {
  const family = "files";
  const { handlers: service, faults } = createServiceHandlers({ ...deps, family });
  const restores = createRestoreHandlers({ ...deps, owners: createBackupAccess({ ...deps, family }) });

  const handlers: Handlers<typeof FilesService> = {
    async createFilesService(request, call) {
      await deps.hostsReported(call.signal);
      return service.createManagedService(asNewService(request), call);
    },
    listFilesServices: (request, call) =>
      service.listManagedServices(create(ListManagedServicesRequestSchema, fieldsOf(request)), call),
    getFilesService: ({ id }, call) => service.getManagedService(create(GetManagedServiceRequestSchema, { id }), call),
    updateFilesService: (request, call) => service.updateManagedService(asChange(request), call),
    startFilesService: ({ id }, call) =>
      service.startManagedService(create(StartManagedServiceRequestSchema, { id }), call),
    stopFilesService: ({ id }, call) =>
      service.stopManagedService(create(StopManagedServiceRequestSchema, { id }), call),
    restartFilesService: ({ id }, call) =>
      service.restartManagedService(create(RestartManagedServiceRequestSchema, { id }), call),
    resizeFilesService: ({ id, planName }, call) =>
      service.resizeManagedService(create(ResizeManagedServiceRequestSchema, { id, planName }), call),
    expandFilesStorage: ({ id, storageSizeGb }, call) =>
      service.expandStorage(create(ExpandStorageRequestSchema, { id, storageSizeGb }), call),
    deleteFilesService: (request, call) =>
      service.deleteManagedService(create(DeleteManagedServiceRequestSchema, fieldsOf(request)), call),
    undeleteFilesService: ({ id, name }, call) => {
      const request = create(UndeleteManagedServiceRequestSchema, {
        serviceId: id,
        ...(name !== undefined && { name }),
      });
      return restores.undeleteManagedService(request, call);
    },
    getFilesConnection: async ({ id }, call) =>
      filesConnectionOf(deps.access.require(id, call).object, deps.trustBundle()),
    ...createKeyHandlers(deps),
  };
  return serve(FilesService, handlers, {
    createFilesService: (request) => faults.createManagedService(asNewService(request)),
    updateFilesService: (request) => faults.updateManagedService(asChange(request)),
  });
}

function asNewService(request: CreateFilesServiceRequest): CreateManagedServiceRequest {
  return create(CreateManagedServiceRequestSchema, { ...fieldsOf(request), databaseType: "files" });
}

function asChange(request: UpdateFilesServiceRequest): UpdateManagedServiceRequest {
  return create(UpdateManagedServiceRequestSchema, fieldsOf(request));
}

/** The fields of a message, for a message of another type. */
function fieldsOf<M extends { readonly $typeName: string }>(message: M): Omit<M, "$typeName"> {
  const { $typeName: _, ...fields } = message;
  return fields;
}

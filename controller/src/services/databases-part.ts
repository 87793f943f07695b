import { definePart } from "#kernel/part.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { DatabaseUserObject } from "./contents/user/database-user.ts";
import type { ResizeDeps } from "./scaling/resize-service.ts";
import type { FilesApiDeps } from "./files/files-api.ts";
import type { ManagedServiceApiDeps } from "./service/managed-service-api.ts";

/** Dependencies with which other groups create, change and delete services. */
export type DatabaseParts = ResizeDeps &
  Pick<ManagedServiceApiDeps, "services" | "operations" | "creation" | "engines" | "consumers"> &
  Pick<FilesApiDeps, "hostsReported"> & {
    readonly users: Collection<DatabaseUserObject>;
  };

export const databasesPart = definePart<DatabaseParts>("databases");

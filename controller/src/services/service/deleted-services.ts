import type { PageBounds } from "#kernel/page/cursor.ts";
import type { ManagedServiceObject } from "./managed-service.ts";

/** A service that is gone and can come back, as it was. Times are milliseconds since 1970. */
export interface DeletedService {
  readonly service: ManagedServiceObject;
  readonly at: number;
  readonly until: number;
}

/** Services that are gone and can come back. */
export interface DeletedServices {
  /** Oldest first, by when they were made. */
  page(
    accepts: (service: ManagedServiceObject) => boolean,
    page: PageBounds & { readonly organizationId: string },
  ): { readonly items: DeletedService[]; readonly next: string | undefined };
}

import type { PageBounds } from "#kernel/page/cursor.ts";
import type { ManagedServiceObject } from "./managed-service.ts";

/** A deleted service that can be undeleted. Times are milliseconds since 1970. */
export interface DeletedService {
  readonly service: ManagedServiceObject;
  readonly at: number;
  readonly until: number;
}

/** Deleted services that can be undeleted. */
export interface DeletedServices {
  /** One page, ordered by creation, oldest first. */
  page(
    accepts: (service: ManagedServiceObject) => boolean,
    page: PageBounds & { readonly organizationId: string },
  ): { readonly items: DeletedService[]; readonly next: string | undefined };
}

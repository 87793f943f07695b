import type { Outcome } from "#kernel/runtime/reconciler.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ManagedServiceObject } from "./managed-service.ts";

/** What came of a look at a service's pending updates. */
export type MaintenanceLook =
  /** Something was written: look at the service anew. */
  | { readonly written: Outcome }
  /** When the next one is due; null when only a change matters. */
  | { readonly written: undefined; readonly lookAgainMs: number | null };

/** What a service's reconciler has done about its pending updates. */
export interface ServiceMaintenance {
  /** Notes, announces or begins what is due. */
  settle(service: Stored<ManagedServiceObject>, signal: AbortSignal): Promise<MaintenanceLook>;
  /** Told of an image that failed on a service, before that is on record there. */
  failed(image: string, serviceId: string, reason: string, signal: AbortSignal): Promise<void>;
}

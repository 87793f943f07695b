import type { ReconcileOutcome } from "#kernel/runtime/reconciler.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";

/** Result of a check of a service's pending updates. */
export type MaintenanceOutcome =
  /** The service was written, so the caller must read it again. */
  | { readonly written: ReconcileOutcome }
  /** Milliseconds until the next check; null if none is needed before a change. */
  | { readonly written: undefined; readonly recheckInMs: number | null };

/** Maintenance of a service, for the reconciler of services. */
export interface ServiceMaintenance {
  /** Records, announces or begins due updates. */
  settle(service: Stored<ManagedServiceObject>, signal: AbortSignal): Promise<MaintenanceOutcome>;
  /** Reports an image that failed on a service, before the service records it. */
  failed(image: string, serviceId: string, reason: string, signal: AbortSignal): Promise<void>;
}

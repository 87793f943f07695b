import type { ManagedServiceObject } from "./managed-service.ts";

const hourMs = 3_600_000;
/** Hours before the expiry at which warnings are emitted. */
const warningHours = [24, 1] as const;

/** Action that is due for a service's time to live, or the milliseconds until the next check. */
export type Expiry =
  | { readonly action: "none"; readonly recheckInMs: number | null }
  | { readonly action: "warn"; readonly hours: number }
  | { readonly action: "announceProtection" }
  | { readonly action: "delete" };

/**
 * The action that is due now. `deferred`: deletions by expiry wait, because the clocks disagree or the store was
 * restored.
 */
export function expiryOf(service: ManagedServiceObject, now: number, deferred: boolean): Expiry {
  const { expiresAt, deletionProtection } = service.spec;
  if (expiresAt === null || service.metadata.deletionRequestedAt !== undefined)
    return { action: "none", recheckInMs: null };
  const remainingMs = expiresAt - now;
  if (remainingMs <= 0) {
    if (deferred) return { action: "none", recheckInMs: 60_000 };
    if (!deletionProtection) return { action: "delete" };
    return service.status.announcedProtectedExpiry
      ? { action: "none", recheckInMs: null }
      : { action: "announceProtection" };
  }
  // A service that lives for less than a day gets no warning a day ahead.
  const due = warningHours.filter((hours) => remainingMs <= hours * hourMs && (service.spec.ttlHours ?? 0) > hours);
  const missing = due.filter((hours) => !service.status.expiryWarnings.includes(hours));
  const nearest = missing.at(-1);
  if (nearest !== undefined) return { action: "warn", hours: nearest };
  const nextMs = warningHours.map((hours) => remainingMs - hours * hourMs).filter((ms) => ms > 0);
  return { action: "none", recheckInMs: Math.max(1, Math.min(remainingMs, ...nextMs)) };
}

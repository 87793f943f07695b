import type { ManagedServiceObject } from "./managed-service.ts";

const hourMs = 3_600_000;
/** Warnings go out so many hours before the end. */
const warningHours = [24, 1] as const;

/** What a service's time to live asks for now, and when to look again. */
export type Expiry =
  | { readonly action: "none"; readonly lookAgainMs: number | null }
  | { readonly action: "warn"; readonly hours: number }
  | { readonly action: "announceHeld" }
  | { readonly action: "delete" };

/** Pure. `held`: deletions by time wait (the clocks disagree, or the store was restored). */
export function expiryOf(service: ManagedServiceObject, now: number, held: boolean): Expiry {
  const { expiresAt, deletionProtection } = service.spec;
  if (expiresAt === null || service.metadata.deletionRequestedAt !== undefined)
    return { action: "none", lookAgainMs: null };
  const leftMs = expiresAt - now;
  if (leftMs <= 0) {
    if (held) return { action: "none", lookAgainMs: 60_000 };
    if (!deletionProtection) return { action: "delete" };
    return service.status.announcedProtectedExpiry ? { action: "none", lookAgainMs: null } : { action: "announceHeld" };
  }
  // A service that lives for less than a day gets no warning of a day.
  const due = warningHours.filter((hours) => leftMs <= hours * hourMs && (service.spec.ttlHours ?? 0) > hours);
  const missing = due.filter((hours) => !service.status.expiryWarnings.includes(hours));
  const nearest = missing.at(-1);
  if (nearest !== undefined) return { action: "warn", hours: nearest };
  const nextMs = warningHours.map((hours) => leftMs - hours * hourMs).filter((ms) => ms > 0);
  return { action: "none", lookAgainMs: Math.max(1, Math.min(leftMs, ...nextMs)) };
}

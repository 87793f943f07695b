import type { Call, Principal } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { NewAudit } from "#kernel/store/outbox-entry.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { covers } from "./scopes.ts";

/** The organization that the call acts in; an operator without one must use a key of it. */
export function organizationOf(call: Call): string {
  const organizationId = call.principal?.organizationId;
  if (organizationId === undefined) {
    throw new HoldfastError(
      "ORGANIZATION_REQUIRED",
      "This credential belongs to no organization; use a key of the one that you mean.",
    );
  }
  return organizationId;
}

/** The caller of a method that is not public. */
export function principalOf(call: Call): Principal {
  if (call.principal === undefined) throw new HoldfastError("UNAUTHENTICATED", "This needs a credential.");
  return call.principal;
}

/** Throws SCOPE_MISSING that names the scope. */
export function requireScope(call: Call, scope: string): void {
  if (call.principal !== undefined && covers(call.principal.scopes, scope)) return;
  throw new HoldfastError("SCOPE_MISSING", `This needs the scope ${scope}.`, { members: { scope } });
}

/** A caller cannot grant scopes that it lacks: throws SCOPE_MISSING that names the first missing one. */
export function requireScopes(call: Call, scopes: Iterable<string>): void {
  for (const scope of scopes) requireScope(call, scope);
}

/** May a limited token touch this object? Every other credential may. */
export function mayTouch(call: Call, kind: string, id: string): boolean {
  const resources = call.principal?.resources;
  return resources === undefined || resources.some((resource) => resource.kind === kind && resource.id === id);
}

/** Throws SCOPE_MISSING for a token that is limited to existing objects. */
export function requireUnlimited(call: Call): void {
  if (call.principal?.resources === undefined) return;
  throw new HoldfastError("SCOPE_MISSING", "The token is limited to named resources and makes no new ones.");
}

/**
 * Commits, and waits a second at most until reads of this replica show it. The commit cannot be undone, so a replica
 * that is further behind answers all the same: a read with this Holdfast-Revision waits for it.
 */
export async function commitAndSee(
  call: Call,
  unit: UnitOfWork,
  collections: readonly Pick<Collection<unknown>, "reached">[],
): Promise<void> {
  const revision = await unit.commit(call.signal);
  call.setHeader("Holdfast-Revision", String(revision));
  await Promise.allSettled(collections.map((collection) => collection.reached(revision, 1_000)));
}

/** The audit entry of a mutation that happens in the caller's own transaction. */
export function auditOf(
  call: Call,
  action: string,
  objectKind: NewAudit["objectKind"],
  objectId: string,
  detail?: string,
): NewAudit {
  return {
    organizationId: call.principal?.organizationId ?? "",
    actor: actorOf(call),
    source: call.source,
    action,
    objectKind,
    objectId,
    result: "ok",
    requestId: call.requestId,
    ...(detail !== undefined && { detail }),
  };
}

/** The caller as audit names it: `api_key:hfk_...`, `user:admin`. */
export function actorOf(call: Call): string {
  return call.principal === undefined ? "anonymous" : `${call.principal.kind}:${call.principal.name}`;
}

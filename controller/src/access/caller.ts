import type { Call, Principal } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { NewAudit } from "#kernel/store/outbox-entry.ts";
import { covers } from "./scopes.ts";

/** The organization that the call acts in. Throws ORGANIZATION_REQUIRED, such as for an operator without one. */
export function organizationOf(call: Call): string {
  const organizationId = call.principal?.organizationId;
  if (organizationId === undefined) {
    throw new HoldfastError(
      "ORGANIZATION_REQUIRED",
      "The credential does not belong to an organization; use a key of one.",
    );
  }
  return organizationId;
}

/** The caller; throws UNAUTHENTICATED without one. */
export function principalOf(call: Call): Principal {
  if (call.principal === undefined) throw new HoldfastError("UNAUTHENTICATED", "The method requires a credential.");
  return call.principal;
}

/** Throws SCOPE_MISSING that names the scope. */
export function requireScope(call: Call, scope: string): void {
  if (call.principal !== undefined && covers(call.principal.scopes, scope)) return;
  throw new HoldfastError("SCOPE_MISSING", `This call requires the scope ${scope}.`, { members: { scope } });
}

/** Throws SCOPE_MISSING that names the first missing scope: callers cannot grant scopes that they lack. */
export function requireScopes(call: Call, scopes: Iterable<string>): void {
  for (const scope of scopes) requireScope(call, scope);
}

/** True unless the credential is a token that is limited to other objects. */
export function mayTouch(call: Call, kind: string, id: string): boolean {
  const resources = call.principal?.resources;
  return resources === undefined || resources.some((resource) => resource.kind === kind && resource.id === id);
}

/** True unless the call's path names another kind of owner, such as `/apps` for a managed service. */
export function matchesOwnerPath(call: Pick<Call, "ownerKind">, kind: string): boolean {
  return call.ownerKind === undefined || call.ownerKind === kind;
}

/** Throws SCOPE_MISSING for a token that is limited to existing objects. */
export function requireUnlimited(call: Call): void {
  if (call.principal?.resources === undefined) return;
  throw new HoldfastError("SCOPE_MISSING", "The token is limited to named resources and cannot create new ones.");
}

/**
 * The audit entry of a call. `mutate` writes the entry of a change; a call that reads a secret passes it to the outbox.
 */
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

/** The caller as the audit log names it: `api_key:hfk_...`, `user:admin`. */
export function actorOf(call: Call): string {
  return call.principal === undefined ? "anonymous" : `${call.principal.kind}:${call.principal.name}`;
}

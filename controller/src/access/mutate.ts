import type { AnyMessage, Call } from "@holdfast/common/call.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { NewAudit } from "#kernel/store/outbox-entry.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { Changes, UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { auditOf } from "./caller.ts";

/** The description of a call's change. */
export interface Mutation {
  /** Name in the audit log, such as `webhook.update`. */
  readonly action: string;
  /** Kind of the object in the audit entry. */
  readonly kind: NewAudit["objectKind"];
  /** The collections of this controller that include the change before the call returns. */
  readonly visibleIn: readonly Pick<Collection<unknown>, "untilRevision">[];
  /** Maximum wait for these collections; a second by default. */
  readonly visibleTimeoutMs?: number;
}

/** The outcome of a change function. `Answer` is the result of `mutate`. */
export type MutationOutcome<Result> =
  /** The request needs no change: nothing is committed or audited. */
  | { readonly unchanged: Result }
  | (Changed & { readonly response: Result & AnyMessage })
  | (Changed & { readonly result: Result; readonly stored?: AnyMessage | undefined });

/**
 * A change to commit. The response message is stored under the call's Idempotency-Key in the same transaction: it is
 * `response`, or `stored` if the caller derives the response from its result. Without either the gateway stores the
 * response after the call.
 */
interface Changed {
  /** Id of the object in the audit entry. */
  readonly id: string;
  readonly detail?: string | undefined;
  /** Organization of the audit entry, if it is not the caller's. */
  readonly organizationId?: string;
  /** Actor of the audit entry, for a sign-in: the call itself has no principal. */
  readonly actor?: string;
  /** ETag of the response. */
  readonly etag?: string;
  /** Reverts claims outside of the store, such as a rate limit; called if the commit fails. */
  readonly undo?: () => void;
}

export interface MutateDeps {
  readonly begin: () => UnitOfWork;
}

/**
 * The only way in which a call changes objects: audit entry, stored response and changes are one transaction, and the
 * call returns after this controller's collections include them. A `Conflict` runs `change` again, so `change` reads
 * and checks the objects itself, in this order: the caller may see the object, the parent permits the change
 * (`refuseIfManaged`), If-Match matches, the state permits it. Each attempt checks the caller's credential again, and
 * the commit requires it unchanged: a change that is concurrent with the revocation of its credential, or with the
 * loss of a role, is committed before it or refused. The commit cannot be undone, so a controller whose collections
 * lag for longer than the maximum wait still responds; a read with the response's Holdfast-Revision waits for them.
 */
export function mutate<Result>(
  { begin }: MutateDeps,
  call: Call,
  { action, kind, visibleIn, visibleTimeoutMs = 1_000 }: Mutation,
  change: (unit: Changes) => MutationOutcome<Result> | Promise<MutationOutcome<Result>>,
): Promise<Result> {
  return retryConflict(call.signal, async () => {
    const unit = begin();
    for (const precondition of call.principal?.preconditions?.() ?? []) unit.onlyWhile(precondition);
    const outcome = await change(unit);
    if ("unchanged" in outcome) return outcome.unchanged;
    const { id, detail, organizationId, actor, etag } = outcome;
    const entry = auditOf(call, action, kind, id, detail);
    unit.audit({ ...entry, ...(organizationId !== undefined && { organizationId }), ...(actor && { actor }) });
    const stored = "response" in outcome ? outcome.response : outcome.stored;
    if (stored !== undefined) unit.storeResponse(call, stored);
    const revision = await unit.commit(call.signal).catch((error: unknown) => {
      outcome.undo?.();
      throw error;
    });
    call.setHeader("Holdfast-Revision", String(revision));
    if (etag !== undefined) call.setHeader("ETag", etag);
    await Promise.allSettled(visibleIn.map((collection) => collection.untilRevision(revision, visibleTimeoutMs)));
    return "response" in outcome ? outcome.response : outcome.result;
  });
}

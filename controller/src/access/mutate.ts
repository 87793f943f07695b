import type { AnyMessage, Call } from "@holdfast/common/call.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { NewAudit } from "#kernel/store/outbox-entry.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { Changes, UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { auditOf } from "./caller.ts";

/** The change of a call, as the audit log names it. */
export interface Mutation {
  /** Such as `webhook.update`. */
  readonly action: string;
  /** Kind of the object in the audit entry. */
  readonly kind: NewAudit["objectKind"];
  /** The collections of this controller that have the change when the call returns. */
  readonly see: readonly Pick<Collection<unknown>, "reached">[];
  /** Longest wait for them; a second by default. */
  readonly seeMs?: number;
}

/** The audit entry names the changed object; `Answer` is what the caller gets. */
export type Outcome<Answer> =
  /** The request needs no change: nothing is committed or audited. */
  | { readonly unchanged: Answer }
  | (Changed & { readonly response: Answer & AnyMessage })
  | (Changed & { readonly answer: Answer; readonly stored?: AnyMessage | undefined });

/**
 * `response`, or `stored` for an answer that the caller turns into the response, is stored under the call's
 * Idempotency-Key in the same transaction. Without either the gateway stores the response after the call.
 */
interface Changed {
  /** Id of the object in the audit entry. */
  readonly id: string;
  readonly detail?: string | undefined;
  /** Organization of the audit entry, if it is not the caller's. */
  readonly organizationId?: string;
  /** Actor of the audit entry, for a call that signs them in. */
  readonly actor?: string;
  /** ETag of the response. */
  readonly etag?: string;
  /** Takes back what the change claimed outside of the store; called when the commit fails. */
  readonly undo?: () => void;
}

export interface MutateDeps {
  readonly begin: () => UnitOfWork;
}

/**
 * The only way in which a call changes objects: audit entry, stored response and changes are one transaction, and the
 * call returns once this controller's memory has them. A `Conflict` runs `change` again, so it reads and checks what it
 * changes itself: first that the caller may see the object, then the parent (`refuseIfManaged`), then If-Match, then
 * its state. Each attempt checks the caller's credential again, and the commit requires it unchanged: a change that is
 * concurrent with the end of its credential, or with the loss of a role, is committed before it or refused. The commit
 * cannot be undone, so a replica that lags further still responds: a read with the response's Holdfast-Revision waits
 * for it.
 */
export function mutate<Answer>(
  { begin }: MutateDeps,
  call: Call,
  { action, kind, see, seeMs = 1_000 }: Mutation,
  change: (unit: Changes) => Outcome<Answer> | Promise<Outcome<Answer>>,
): Promise<Answer> {
  return retryConflict(call.signal, async () => {
    const unit = begin();
    for (const fence of call.principal?.fences?.() ?? []) unit.onlyWhile(fence);
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
    await Promise.allSettled(see.map((collection) => collection.reached(revision, seeMs)));
    return "response" in outcome ? outcome.response : outcome.answer;
  });
}

import { create, type DescMethod, getOption } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type RefusedCall, serve, type ServedService } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import {
  AuditEntrySchema,
  type ListAuditEntriesRequest,
  type ListAuditEntriesResponse,
  ListAuditEntriesResponseSchema,
} from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { AuditLogEntrySchema, AuditService } from "@holdfast/proto/holdfast/v1/audit_pb.ts";
import { rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import type { History } from "#kernel/history/history.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { AuditEntry, NewAudit } from "#kernel/store/outbox-entry.ts";
import type { AccessApiDeps } from "../access-api-deps.ts";
import { organizationOf } from "../caller.ts";
import { actionOf } from "./audited-action.ts";

/** Reads the audit log from the history, newest first. */
export interface AuditLog {
  page(request: ListAuditEntriesRequest, call: Call): Promise<ListAuditEntriesResponse>;
}

export function createAuditLog({ history, cursors }: { history: Pick<History, "audit">; cursors: Cursors }): AuditLog {
  return {
    async page({ page: requestedPage, organizationId }, call) {
      const page = cursors.open(call, `audit ${organizationId}`, null, requestedPage);
      const filter = organizationId === "" ? {} : { organizationId };
      const { items, next, more } = await history.audit(filter, { ...page, order: "newest first" });
      return create(ListAuditEntriesResponseSchema, {
        entries: items.map(auditMessage),
        ...page.next(more ? next : undefined),
      });
    },
  };
}

function auditMessage({ occurredAt, ...entry }: AuditEntry) {
  return create(AuditEntrySchema, { ...entry, time: timestampFromMs(occurredAt) });
}

/** ListAuditLog: members read the audit log of their organization. */
export function createAuditApi({ history, cursors }: Pick<AccessApiDeps, "history" | "cursors">): ServedService {
  const handlers: Handlers<typeof AuditService> = {
    listAuditLog: async ({ actor, object, action, since, until, ...requested }, call) => {
      const filter = {
        organizationId: organizationOf(call),
        ...(actor !== undefined && { actor }),
        ...(object !== undefined && { objectId: object }),
        ...(action !== undefined && { type: action }),
        ...(since !== undefined && { since: timestampMs(since) }),
        ...(until !== undefined && { until: timestampMs(until) }),
      };
      const page = cursors.open(call, "audit-log", filter, requested);
      const { items, next, more } = await history.audit(filter, { ...page, order: "newest first" });
      const entries = items.map(({ id, occurredAt, actor: who, source, action: what, ...entry }) =>
        create(AuditLogEntrySchema, {
          id,
          time: timestampFromMs(occurredAt),
          actor: who,
          source,
          action: what,
          objectKind: entry.objectKind,
          objectId: entry.objectId,
          result: entry.result,
          requestId: entry.requestId,
          ...(entry.detail !== undefined && { detail: entry.detail }),
        }),
      );
      return { entries, ...page.next(more ? next : undefined) };
    },
  };
  return serve(AuditService, handlers);
}

export interface RefusalAuditDeps {
  /** Records an entry; the implementation limits the number of entries per caller. */
  readonly record: (entry: NewAudit) => void;
  /** True if the error is the outcome of an act that has its own entry (kernel/outbox/audited-acts.ts). */
  readonly hasEntry: (error: unknown) => boolean;
  /** Object kind of each RPC service that changes something, by its full name. */
  readonly kinds: Readonly<Record<string, string>>;
  /** The organization whose audit log has the failed sign-ins of a user; undefined for an unknown user. */
  readonly organizationOfUser: (username: string) => string | undefined;
}

/** Writes refused changes to the audit log. */
export interface RefusalAudit {
  /** Records a change that was refused before it reached its method. */
  refused(call: RefusedCall): void;
  /** Wraps a service so that refused changes are recorded. Throws for a service whose object kind is not declared. */
  wrap(served: ServedService): ServedService;
}

export function createRefusalAudit(deps: RefusalAuditDeps): RefusalAudit {
  const { hasEntry, kinds } = deps;
  /** Records the entry; a failed sign-in belongs to the organization of its user, whose members then see it. */
  const record = (entry: NewAudit) => {
    const isSignIn = entry.objectKind === "session" && entry.organizationId === "" && entry.objectId !== "";
    const organizationId = isSignIn ? (deps.organizationOfUser(entry.objectId) ?? "") : entry.organizationId;
    deps.record({ ...entry, organizationId });
  };
  const kindOf = ({ parent }: DescMethod) => lookUp(kinds, parent.typeName) ?? "";

  return {
    refused: ({ method, principal, source, requestId, error, input = {} }) =>
      record(refusalOf(method, kindOf(method), { principal, source, requestId }, error, input)),
    wrap(served) {
      const handlers: Record<string, (input: never, call: Call) => unknown> = {};
      for (const method of served.service.methods) {
        const handler = lookUp(served.handlers, method.localName);
        if (handler === undefined) throw new Error(`${served.service.typeName} has no ${method.localName}`);
        if (getOption(method, rules).readOnly || method.methodKind !== "unary") {
          handlers[method.localName] = handler;
          continue;
        }
        const kind = kindOf(method);
        if (kind === "")
          throw new Error(`no system declares the object kind of ${method.parent.typeName}: add it to audited`);
        handlers[method.localName] = async (input, call) => {
          try {
            return await handler(input, call);
          } catch (error) {
            if (!hasEntry(error)) record(refusalOf(method, kind, call, HoldfastError.from(error), input));
            throw error;
          }
        };
      }
      return { ...served, handlers };
    },
  };
}

function refusalOf(
  method: DescMethod,
  objectKind: string,
  { principal, source, requestId }: Pick<Call, "principal" | "source" | "requestId">,
  error: HoldfastError,
  input: object,
): NewAudit {
  return {
    organizationId: principal?.organizationId ?? "",
    actor: principal === undefined ? "anonymous" : `${principal.kind}:${principal.name}`,
    source,
    action: `${actionOf(method)} ${error.code}`,
    objectKind,
    objectId: objectIdOf(input as Readonly<Record<string, unknown>>),
    result: "refused",
    requestId,
  };
}

function objectIdOf(input: Readonly<Record<string, unknown>>): string {
  const { serviceId, id: own, userId, username, orgId, hostId, machineId, image } = input;
  const id = serviceId ?? own ?? userId ?? username ?? orgId ?? hostId ?? machineId ?? image;
  return typeof id === "string" ? id.slice(0, 64) : "";
}

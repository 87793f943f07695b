import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import {
  AuditEntrySchema,
  type ListAuditEntriesRequest,
  type ListAuditEntriesResponse,
  ListAuditEntriesResponseSchema,
} from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { AuditLogEntrySchema, AuditService } from "@holdfast/proto/holdfast/v1/audit_pb.ts";
import type { History } from "#kernel/history/history.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { AuditEntry } from "#kernel/store/outbox-entry.ts";
import type { AccessApiDeps } from "../access-api-deps.ts";
import { organizationOf } from "../caller.ts";

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

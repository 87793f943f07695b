import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { AuditLogEntrySchema, AuditService } from "@holdfast/proto/holdfast/v1/audit_pb.ts";
import type { AccessApiDeps } from "../access-api-deps.ts";
import { organizationOf } from "../caller.ts";

/** Members' reads of the audit log; nothing changes it. */
export function createAuditApi({ history, cursors }: Pick<AccessApiDeps, "history" | "cursors">): ServedService {
  const handlers: Handlers<typeof AuditService> = {
    listAuditLog: async ({ actor, object, action, since, until, ...asked }, call) => {
      const filter = {
        organizationId: organizationOf(call),
        ...(actor !== undefined && { actor }),
        ...(object !== undefined && { objectId: object }),
        ...(action !== undefined && { type: action }),
        ...(since !== undefined && { since: timestampMs(since) }),
        ...(until !== undefined && { until: timestampMs(until) }),
      };
      const page = cursors.open(call, "audit-log", filter, asked);
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

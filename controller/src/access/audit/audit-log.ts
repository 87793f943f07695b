import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Call } from "@holdfast/common/call.ts";
import {
  AuditEntrySchema,
  type ListAuditEntriesRequest,
  type ListAuditEntriesResponse,
  ListAuditEntriesResponseSchema,
} from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import type { History } from "#kernel/history/history.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { AuditEntry } from "#kernel/store/outbox-entry.ts";

/** Reads the audit log out of history, newest first. */
export interface AuditLog {
  page(request: ListAuditEntriesRequest, call: Call): Promise<ListAuditEntriesResponse>;
}

export function createAuditLog({ history, cursors }: { history: Pick<History, "audit">; cursors: Cursors }): AuditLog {
  return {
    async page({ page: asked, organizationId }, call) {
      const page = cursors.open(call, `audit ${organizationId}`, null, asked);
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

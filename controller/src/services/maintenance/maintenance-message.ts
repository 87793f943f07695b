import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type PendingUpdateSchema,
  type PendingUpdateSummarySchema,
  UpdateKind as MessageKind,
} from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import type { PendingUpdate, UpdateKind } from "./pending-update.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { PendingSummary } from "../service/managed-service-message.ts";
import { maintenanceContext, type MaintenanceContextDeps } from "./maintenance-context.ts";
import { pendingUpdates } from "./pending-updates.ts";

// biome-ignore format: a table, aligned so that it reads as one
const kinds: Record<UpdateKind, MessageKind> = {
  engine_minor: MessageKind.ENGINE_MINOR,
  image:        MessageKind.IMAGE,
  guest_kernel: MessageKind.GUEST_KERNEL,
  restart:      MessageKind.RESTART,
  keeper:       MessageKind.KEEPER,
};

export function updateMessage(update: PendingUpdate): MessageInitShape<typeof PendingUpdateSchema> {
  const { title, description, from, to, requiresRestart, changesTextOrder, blocked, snapshotProblem, availableSince } =
    update;
  return {
    ...summaryMessage(update),
    title,
    description,
    requiresRestart,
    changesTextOrder,
    availableSince: timestampFromMs(availableSince),
    ...(from === null ? {} : { from }),
    ...(to === null ? {} : { to }),
    ...(blocked === null ? {} : { blockedReason: blocked }),
    ...(snapshotProblem === null ? {} : { noSnapshotReason: snapshotProblem }),
  };
}

function summaryMessage({
  id,
  kind,
  urgent,
  applyAt,
}: PendingUpdate): Omit<MessageInitShape<typeof PendingUpdateSummarySchema>, "$typeName"> {
  return {
    id,
    kind: kinds[kind],
    urgent,
    ...(applyAt === null ? {} : { applyAt: timestampFromMs(applyAt) }),
  };
}

/** Summaries of a service's pending updates, which are part of its message. */
export function pendingSummaries(
  service: ManagedServiceObject,
  deps: MaintenanceContextDeps & { readonly clock: Clock },
): PendingSummary[] {
  return pendingUpdates(service, maintenanceContext(service, deps, deps.clock.now())).map(summaryMessage);
}

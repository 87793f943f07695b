import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type PendingUpdateSchema,
  type PendingUpdateSummarySchema,
  UpdateKind as ShownKind,
} from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import type { PendingUpdate, UpdateKind } from "./pending-update.ts";

// biome-ignore format: a table, aligned so that it reads as one
const shownKinds: Record<UpdateKind, ShownKind> = {
  engine_minor: ShownKind.ENGINE_MINOR,
  image:        ShownKind.IMAGE,
  guest_kernel: ShownKind.GUEST_KERNEL,
  restart:      ShownKind.RESTART,
  keeper:       ShownKind.KEEPER,
};

export function updateMessage(update: PendingUpdate): MessageInitShape<typeof PendingUpdateSchema> {
  const { title, description, from, to, requiresRestart, changesTextOrder, blocked, noSnapshot, availableSince } =
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
    ...(noSnapshot === null ? {} : { noSnapshotReason: noSnapshot }),
  };
}

export function summaryMessage({
  id,
  kind,
  urgent,
  applyAt,
}: PendingUpdate): Omit<MessageInitShape<typeof PendingUpdateSummarySchema>, "$typeName"> {
  return {
    id,
    kind: shownKinds[kind],
    urgent,
    ...(applyAt === null ? {} : { applyAt: timestampFromMs(applyAt) }),
  };
}

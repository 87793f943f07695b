import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { EventSchema } from "@holdfast/proto/holdfast/v1/event_pb.ts";
import type { EventEntry } from "#kernel/store/outbox-entry.ts";

/** An event as the API shows it. */
export function eventMessage({ id, type, occurredAt, data }: EventEntry): MessageInitShape<typeof EventSchema> {
  return { id, eventType: type, timestamp: timestampFromMs(occurredAt), data: data as JsonObject };
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  MaintenanceWindow as WindowMessage,
  MaintenanceWindowSchema,
  Weekday,
} from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import type { MaintenanceWindow } from "./maintenance-window.ts";

/** The window that a request asks for; null for the one that follows from the id. Days of the protos begin with 1. */
export function windowOf(asked: WindowMessage | undefined): MaintenanceWindow | null {
  return asked === undefined ? null : { day: asked.day - 1, hour: asked.hour };
}

export function windowMessage({ day, hour }: MaintenanceWindow): MessageInitShape<typeof MaintenanceWindowSchema> {
  return { day: (day + 1) as Weekday, hour };
}

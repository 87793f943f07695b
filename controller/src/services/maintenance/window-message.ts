import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  MaintenanceWindow as WindowMessage,
  MaintenanceWindowSchema,
  Weekday,
} from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import type { MaintenanceWindow } from "./maintenance-window.ts";

/**
 * The requested window; null for the default window of the id. Days of the protos begin with 1, those of the spec with
 * 0.
 */
export function windowOf(requested: WindowMessage | undefined): MaintenanceWindow | null {
  return requested === undefined ? null : { day: requested.day - 1, hour: requested.hour };
}

/** The window as a message; days of the protos begin with 1. */
export function windowMessage({ day, hour }: MaintenanceWindow): MessageInitShape<typeof MaintenanceWindowSchema> {
  return { day: (day + 1) as Weekday, hour };
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  MaintenanceWindow as WindowMessage,
  MaintenanceWindowSchema,
  Weekday,
} from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import type { MaintenanceWindow } from "./maintenance-window.ts";

/**
 * The requested window; null for the default window. Monday is day 1 in the protos and day 0 in the spec.
 */
export function windowOf(requested: WindowMessage | undefined): MaintenanceWindow | null {
  return requested === undefined ? null : { day: requested.day - 1, hour: requested.hour };
}

/** The message of a window. Monday is day 1 in the protos. */
export function windowMessage({ day, hour }: MaintenanceWindow): MessageInitShape<typeof MaintenanceWindowSchema> {
  return { day: (day + 1) as Weekday, hour };
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  MaintenanceWindow as WindowMessage,
  MaintenanceWindowSchema,
  Weekday,
} from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import { hash } from "#kernel/runtime/ownership.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const weekMs = 7 * dayMs;
/** 5 January 1970, 00:00 UTC: the first Monday of the Unix clock. */
const firstMondayMs = 4 * dayMs;

/** Length of a window; public clouds with a fixed length use 30 minutes to 8 hours. */
export const windowLengthMs = 2 * hourMs;
/** Part of the window over which the starts of services with the same window are spread. */
const spreadMs = hourMs;
/** Last part of a window, in which no work starts, so that work completes within the window. */
const closingMs = hourMs / 2;

/** Weekly window of two hours, in UTC, in which automatic maintenance of a service may start. */
export interface MaintenanceWindow {
  /** Day of the week; 0 is Monday. */
  readonly day: number;
  readonly hour: number;
}

/** Hours at which default windows start; all end by six in the morning. */
const nightHours = [22, 23, 0, 1, 2, 3, 4] as const;

/** The window of a service whose owner chose none. Constant for an id, and evenly spread over a fleet. */
export function defaultWindow(serviceId: string): MaintenanceWindow {
  const index = hash(`maintenance-window/${serviceId}`) % (7 * nightHours.length);
  const hour = nightHours[index % nightHours.length] ?? nightHours[0];
  return { day: Math.floor(index / nightHours.length), hour };
}

/**
 * Start of work on the service, in milliseconds since 1970: in the first window that has its start at or after
 * `notBefore` and is not about to close at `now`. The start within the window is derived from the service's id. A past
 * start means that the window is open now.
 */
export function startInWindow(window: MaintenanceWindow, serviceId: string, notBefore: number, now: number): number {
  const within = hash(`maintenance-start/${serviceId}`) % spreadMs;
  const first = firstMondayMs + window.day * dayMs + window.hour * hourMs;
  const earliest = Math.max(notBefore - within, now - (windowLengthMs - closingMs) + 1);
  const opens = first + Math.ceil((earliest - first) / weekMs) * weekMs;
  return opens + within;
}

/** Start and end of the current window, or of the next one, in milliseconds since 1970. */
export function nextWindow(window: MaintenanceWindow, now: number): { readonly from: number; readonly until: number } {
  const first = firstMondayMs + window.day * dayMs + window.hour * hourMs;
  const from = first + Math.ceil((now - windowLengthMs + 1 - first) / weekMs) * weekMs;
  return { from, until: from + windowLengthMs };
}

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

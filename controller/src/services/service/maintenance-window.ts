import { hash } from "#kernel/runtime/ownership.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const weekMs = 7 * dayMs;
/** 5 January 1970, 00:00 UTC: the first Monday of the clock. */
const firstMondayMs = 4 * dayMs;

/** How long a window is open; public clouds that fix it have 30 minutes to 8 hours. */
export const windowLengthMs = 2 * hourMs;
/** Services that share a window begin one after another over its first half, each at a place of its own. */
const spreadMs = hourMs;
/** Nothing begins so shortly before a window's end, so that it is over by then. */
const closingMs = hourMs / 2;

/** When work on a service may begin by itself: two hours from this hour on, UTC, each week. */
export interface MaintenanceWindow {
  /** 0 is Monday. */
  readonly day: number;
  readonly hour: number;
}

/** Windows that nobody chose begin at one of these hours, so that they are over by six in the morning. */
const quietHours = [22, 23, 0, 1, 2, 3, 4] as const;

/** Pure: the window of a service whose owner chose none. Always the same for one id; spread evenly over a fleet. */
export function defaultWindow(serviceId: string): MaintenanceWindow {
  const place = hash(`maintenance-window/${serviceId}`) % (7 * quietHours.length);
  const hour = quietHours[place % quietHours.length] ?? quietHours[0];
  return { day: Math.floor(place / quietHours.length), hour };
}

/**
 * Pure: when work on the service begins, in the first window in which that is not before `notBefore` and not too late `now`.
 * Within the window each service has a moment of its own. Past times are those of a window that is still open.
 */
export function startInWindow(window: MaintenanceWindow, serviceId: string, notBefore: number, now: number): number {
  const within = hash(`maintenance-start/${serviceId}`) % spreadMs;
  const first = firstMondayMs + window.day * dayMs + window.hour * hourMs;
  const earliest = Math.max(notBefore - within, now - (windowLengthMs - closingMs) + 1);
  const opens = first + Math.ceil((earliest - first) / weekMs) * weekMs;
  return opens + within;
}

/** Pure: when the window opens next, or opened when it is open now. */
export function nextWindow(window: MaintenanceWindow, now: number): { readonly from: number; readonly until: number } {
  const first = firstMondayMs + window.day * dayMs + window.hour * hourMs;
  const from = first + Math.ceil((now - windowLengthMs + 1 - first) / weekMs) * weekMs;
  return { from, until: from + windowLengthMs };
}

import type { Maintenance, MaintenanceWindow, PendingUpdate, Weekday } from "@holdfast/sdk/responses.ts";
import { labelOf } from "../format.ts";

export const weekdays: readonly Weekday[] = [
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
  "sunday",
];

/** The hours of a day as choices, such as "03:00 to 05:00 UTC"; a window has two hours. */
export const windowHours: readonly (readonly [value: string, text: string])[] = Array.from(
  { length: 24 },
  (_, hour) => [String(hour), `${clock(hour)} to ${clock((hour + 2) % 24)} UTC`],
);

/** A window as a text: "Sunday, 03:00 to 05:00 UTC". */
export function windowText({ day, hour }: MaintenanceWindow): string {
  return `${labelOf(day)}, ${windowHours[hour]?.[1] ?? ""}`;
}

/** Effects of an update, and reasons against it, as sentences. */
export function notesOf(update: PendingUpdate): readonly string[] {
  const { blocked_reason: blocked, no_snapshot_reason: noSnapshot } = update;
  return [
    ...(update.urgent ? ["Urgent: it also starts outside of the window."] : []),
    ...(update.requires_restart ? ["The engine is restarted."] : []),
    ...(update.changes_text_order
      ? ["It changes the order of texts: indexes on texts must be rebuilt afterwards."]
      : []),
    ...(noSnapshot === null ? [] : [`No snapshot before it: ${noSnapshot}`]),
    ...(blocked === null ? [] : [`Blocked: ${blocked}`]),
  ];
}

/** Reason why updates do not start automatically; null if they do. */
export function pauseReasonOf(maintenance: Maintenance): string | null {
  // oxlint-disable-next-line holdfast/names -- a member of the API
  return maintenance.held;
}

/** Reason why no update can be applied by a click; undefined if some can. */
export function refusalOfApply({ updates, operation }: Maintenance): string | undefined {
  if (operation !== null) return "Updates are being applied.";
  if (updates.length === 0) return "No update is pending.";
  if (updates.every(isRefused)) return "Every pending update is blocked, or must be accepted on the command line.";
  return undefined;
}

/** Ids of the updates that a click applies. A change of the order of texts is accepted on the command line only. */
export function applicableOf({ updates }: Maintenance): readonly string[] {
  return updates.filter((update) => !isRefused(update)).map(({ id }) => id);
}

function isRefused({ blocked_reason: blocked, changes_text_order: changesOrder }: PendingUpdate): boolean {
  return blocked !== null || changesOrder;
}

function clock(hour: number): string {
  return `${String(hour).padStart(2, "0")}:00`;
}

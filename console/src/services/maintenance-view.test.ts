import { expect, test } from "vitest";
import type { Maintenance, PendingUpdate } from "@holdfast/sdk/responses.ts";
import { applicableOf, notesOf, refusalOfApply, windowText } from "./maintenance-view.ts";

const update: PendingUpdate = {
  id: "engine-17.6",
  kind: "image",
  title: "PostgreSQL 17.6",
  description: "",
  from: "17.5",
  to: "17.6",
  urgent: false,
  available_since: "2030-01-01T00:00:00Z",
  apply_at: null,
  requires_restart: true,
  blocked_reason: null,
  changes_text_order: false,
  no_snapshot_reason: null,
};
const of = (...updates: readonly PendingUpdate[]): Maintenance => ({
  service_id: "s",
  window: { day: "sunday", hour: 3 },
  window_is_default: true,
  next_window_from: "2030-01-06T03:00:00Z",
  next_window_until: "2030-01-06T05:00:00Z",
  image: null,
  engine_version: null,
  updates,
  operation: null,
  // oxlint-disable-next-line holdfast/names -- a member of the API
  held: null,
  guest_kernel: null,
});

test("a window has two hours, also over midnight", () => {
  expect(windowText({ day: "sunday", hour: 3 })).toBe("Sunday, 03:00 to 05:00 UTC");
  expect(windowText({ day: "monday", hour: 23 })).toBe("Monday, 23:00 to 01:00 UTC");
});

test("names the effects of an update", () => {
  expect(notesOf(update)).toEqual(["The engine is restarted."]);
  const notes = notesOf({ ...update, urgent: true, blocked_reason: "A backup runs.", no_snapshot_reason: "No space." });
  expect(notes).toHaveLength(4);
  expect(notes.join(" ")).toContain("Blocked: A backup runs.");
});

test("applies what is neither blocked nor changes the order of texts", () => {
  const blocked = { ...update, id: "blocked", blocked_reason: "A backup runs." };
  const reorders = { ...update, id: "reorders", changes_text_order: true };
  expect(applicableOf(of(update, blocked, reorders))).toEqual(["engine-17.6"]);
  expect(refusalOfApply(of(update, blocked))).toBeUndefined();
  expect(refusalOfApply(of(blocked, reorders))).toContain("blocked");
  expect(refusalOfApply(of())).toBe("No update is pending.");
});

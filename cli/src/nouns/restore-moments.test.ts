import { expect, test } from "vitest";
import { renderObject } from "../table.ts";
import { momentFields, withMoments, withSource } from "./restore-moments.ts";

const [from, between, until, to] = ["01", "02", "03", "04"].map((day) => `2030-01-${day}T00:00:00Z`) as [
  string,
  string,
  string,
  string,
];
const backups = { last_completed_at: from, next_at: to, key_version: 1, last_drill: null };

test("the window has its gaps", () => {
  const withGap = { ...backups, restorable: { from, to }, gaps: [{ from: between, to: until }] };
  const lines = renderObject(withMoments(withGap), momentFields).split("\n");
  expect(lines[0]).toMatch(new RegExp(`^restorable +${from} to ${to}$`));
  expect(lines[1]).toMatch(new RegExp(`^gaps +${between} to ${until}$`));
  expect(withMoments({ ...backups, restorable: null, gaps: [] })).toMatchObject({
    restorable: "nothing yet",
    gaps: "none",
  });
});

test("a copy has its source and the moment of its data", () => {
  const restored_from = {
    kind: "restore",
    service_id: "s-1",
    backup_id: "b-1",
    restore_point: null,
    restores_to: from,
  };
  const copy = { name: "then", restored_from };
  expect(withSource(copy)).toMatchObject({
    name: "then",
    restored_from: "restore of backup b-1 of service s-1",
    restores_to: from,
  });
});

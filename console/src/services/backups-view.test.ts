import { expect, test } from "vitest";
import {
  deletionRefusal,
  faultOfTime,
  isUnfinished,
  nameOfBackup,
  positionOf,
  scheduleOf,
  scheduleChangeOf,
  timeInputOf,
  timeLineOf,
  verificationRefusal,
} from "./backups-view.ts";

const restorable = { from: "2030-01-01T00:00:00Z", to: "2030-01-01T10:00:00Z" };
const gaps = [{ from: "2030-01-01T02:00:00Z", to: "2030-01-01T03:00:00Z" }];
const at = (time: string) => Date.parse(`2030-01-01T${time}Z`);

test("gaps are where they are in the restore window", () => {
  const line = timeLineOf({ restorable, gaps });
  expect(line?.gaps).toEqual([{ from: 20, width: 10 }]);
  expect(line && positionOf(line, at("05:00:00"))).toBe(50);
  expect(timeLineOf({ restorable: null, gaps: [] })).toBeUndefined();
});

test.each([
  ["00:00:00", undefined],
  ["10:00:00", undefined],
  ["02:00:00", undefined],
  ["02:30:00", "Is in a gap"],
  ["10:00:01", "Is after"],
])("a restore to %s is refused: %s", (time, fault) => {
  const found = faultOfTime({ restorable, gaps }, at(time));
  if (fault === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(fault);
});

test("without a backup, and for no time, nothing can be restored", () => {
  expect(faultOfTime({ restorable: null, gaps: [] }, 0)).toContain("no completed backup");
  expect(faultOfTime({ restorable, gaps }, Number.NaN)).toBe("Is not a date and time.");
});

test("an input has the time in the local time zone", () => {
  expect(Date.parse(timeInputOf(at("05:00:00")))).toBe(at("05:00:00"));
});

test.each([
  ["running", "manual", true, /nothing to verify/, /not finished/],
  ["verifying", "manual", false, /being verified/, /not finished/],
  ["failed", "manual", false, /nothing to verify/, undefined],
  ["completed", "manual", false, undefined, undefined],
  ["completed", "automated", false, undefined, /end of its retention/],
] as const)("a backup that is %s and %s is unfinished: %s", (status, backup_type, unfinished, verify, remove) => {
  const backup = { status, backup_type };
  expect(isUnfinished(backup)).toBe(unfinished);
  for (const [refusal, expected] of [
    [verificationRefusal(backup), verify],
    [deletionRefusal(backup), remove],
  ] as const)
    if (expected === undefined) expect(refusal).toBeUndefined();
    else expect(refusal).toMatch(expected);
});

test("a backup has its time in UTC as its name", () => {
  expect(nameOfBackup({ created_at: "2030-01-02T03:04:05.678Z" })).toBe("2030-01-02 03:04:05 UTC");
});

test("only what is edited of the schedule is sent", () => {
  const input = scheduleOf({ service_id: "s", hour: 3, minute: 5, retention_days: 7 });
  expect(input).toEqual({ time: "03:05", days: "7" });
  expect(scheduleChangeOf({})).toEqual({});
  expect(scheduleChangeOf({ days: "9" })).toEqual({ retention_days: 9 });
  expect(scheduleChangeOf({ time: "23:59", days: "30" })).toEqual({ hour: 23, minute: 59, retention_days: 30 });
});

import { expect, test } from "vitest";
import { faultOfTime, timeInputOf, positionOf, timeLineOf } from "./backups-view.ts";

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

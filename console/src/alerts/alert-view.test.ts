import type { PlatformEvent } from "@holdfast/sdk/event-types.ts";
import type { AlertRule } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { describe, expect, test } from "vitest";
import { conditionText, endOf, firingsOf, newRuleOf, ruleChangeOf, ruleInputOf, thresholdOf } from "./alert-view.ts";

const rule = partial<AlertRule>({
  name: "disk gt 80",
  metric: "disk",
  condition: "gt",
  threshold: 80,
  severity: "warning",
  duration_minutes: 5,
  notification_channel_id: null,
  no_data: "ignore",
});

describe("the form of a rule", () => {
  test("a new rule has what was entered, and the platform's defaults for the rest", () => {
    expect(newRuleOf({ ...ruleInputOf(undefined, "disk"), threshold: "80" })).toEqual({
      metric: "disk",
      condition: "gt",
      threshold: 80,
      duration_minutes: 5,
      severity: "warning",
      no_data: "ignore",
    });
  });

  test("an empty threshold is not a threshold of 0", () => {
    const input = ruleInputOf(undefined, "disk");
    expect(JSON.parse(JSON.stringify(newRuleOf(input)))).toMatchObject({ threshold: null });
    expect(thresholdOf(input)).toBeUndefined();
  });

  test("an unchanged form changes nothing", () => expect(ruleChangeOf(ruleInputOf(rule, "disk"), rule)).toEqual({}));

  test.each([
    [{ threshold: "85" }, { threshold: 85 }],
    [{ channel: "c" }, { notification_channel_id: "c" }],
    [
      { minutes: "0", noData: "fire" },
      { duration_minutes: 0, no_data: "fire" },
    ],
    [
      { name: "full", severity: "critical" },
      { name: "full", severity: "critical" },
    ],
  ] as const)("the input %j changes %j alone", (input, change) =>
    expect(ruleChangeOf({ ...ruleInputOf(rule, "disk"), ...input }, rule)).toEqual(change),
  );

  test("the default channel replaces a channel", () => {
    const before = { ...rule, notification_channel_id: "c" };
    expect(ruleChangeOf({ ...ruleInputOf(before, "disk"), channel: "" }, before)).toEqual({
      notification_channel_id: null,
    });
  });
});

test("a condition has its unit and its time", () => {
  expect(conditionText(rule, "percent")).toBe("above 80% for 5 min");
  expect(conditionText({ condition: "lt", threshold: 1_024, duration_minutes: 0 }, "bytes")).toBe("below 1 KiB");
});

describe("alerts of events", () => {
  const data = { alert_name: "full", metric: "disk", severity: "warning" };
  const fired = (id: string, firedAt: string) =>
    partial<PlatformEvent<"alert.fired">>({
      event_type: "alert.fired",
      data: { ...data, id, fired_at: firedAt, current_value: 91 },
    });
  const resolved = partial<PlatformEvent<"alert.resolved">>({
    event_type: "alert.resolved",
    data: {
      ...data,
      id: "1",
      fired_at: "2030-01-01T10:00:00Z",
      resolved_at: "2030-01-01T10:12:00Z",
      current_value: 40,
      reason: "condition_false",
    },
  });
  const first = fired("1", "2030-01-01T10:00:00Z");

  test.each([
    ["firing first", [first, resolved]],
    ["end first", [resolved, first]],
  ])("a firing and its end are one alert with the value that fired it, %s", (_, events) => {
    const [firing, ...others] = firingsOf(events);
    expect(others).toEqual([]);
    expect(firing).toMatchObject({ value: 91, firedAt: "2030-01-01T10:00:00Z" });
    expect(firing && endOf(firing)).toBe("12 min, the condition ended");
  });

  test("the newest alert is the first, and one without an end still fires", () => {
    const [newest] = firingsOf([first, resolved, fired("2", "2030-01-02T10:00:00Z")]);
    expect(newest?.id).toBe("2");
    expect(newest && endOf(newest)).toBe("still firing");
  });
});

import { expect, test } from "vitest";
import { ageText, bytesText, durationText, labelOf, metricText, numberText, priceText, spanText } from "./format.ts";

test.each([
  [0, "0 s"],
  [59.9, "59 s"],
  [60, "1 min"],
  [7_199, "1 h"],
  [86_400 * 3, "3 d"],
  [86_400 * 3_649, "3,649 d"],
  [-1, "0 s"],
])("%d seconds are %s", (seconds, text) => expect(durationText(seconds)).toBe(text));

test.each([
  ["2030-01-01T00:00:00Z", "just now"],
  ["2029-12-31T23:55:00Z", "5 min ago"],
  ["2030-01-02T00:00:00Z", "in 1 d"],
  ["no time", "no time"],
])("the age of %s is %s", (time, text) => expect(ageText(time, Date.parse("2030-01-01T00:00:00Z"))).toBe(text));

test.each([
  [0, "0 B"],
  [1_023, "1,023 B"],
  [1_536, "1.5 KiB"],
  [3 * 1_024 ** 3, "3 GiB"],
])("%d bytes are %s", (bytes, text) => expect(bytesText(bytes)).toBe(text));

test("numbers, prices and metrics have their units", () => {
  expect(numberText(1_204)).toBe("1,204");
  expect(priceText(12, "USD")).toBe("$12.00");
  expect(metricText(12.34, "percent")).toBe("12.3%");
  expect(metricText(2_048, "bytes per second")).toBe("2 KiB/s");
  expect(metricText(3, "count")).toBe("3");
});

test("names of the API read as labels", () => {
  expect(labelOf("storage_size_gb")).toBe("Storage size GB");
  expect(labelOf("allowed_cidrs")).toBe("Allowed CIDRs");
  expect(labelOf("disk_iops")).toBe("Disk IOPS");
});

test.each([
  ["2030-01-01T00:01:15Z", "1 min"],
  ["2030-01-01T00:00:09Z", "9 s"],
  [null, ""],
])("the time to %s is %j", (end, text) => expect(spanText("2030-01-01T00:00:00Z", end)).toBe(text));

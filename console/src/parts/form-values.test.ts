import { expect, test } from "vitest";
import { editedOf, faultOf, refusedText } from "./form-values.ts";

const fault = (field: string, detail: string) => ({ field, detail, pointer: null, code: "c" });

test("only fields with another value than the newest one are edited", () => {
  const newest = { name: "first", cidrs: "10.8.0.0/16", isProtected: true, rows: [{ a: 1 }] };
  expect(editedOf(newest, { name: "renamed" })).toEqual({ name: "renamed" });
  expect(editedOf(newest, { isProtected: true, cidrs: "10.8.0.0/16", rows: [{ a: 1 }] })).toEqual({});
  expect(editedOf(newest, { isProtected: false, rows: [] })).toEqual({ isProtected: false, rows: [] });
});

test("a field has its faults and the faults of its members", () => {
  const faults = [fault("name", "is in use"), fault("tags.env", "is too long"), fault("named", "is no field")];
  expect(faultOf(faults, "name")).toBe("Is in use.");
  expect(faultOf(faults, "tags")).toBe("tags.env is too long.");
  expect(faultOf(faults, "plan_name")).toBeUndefined();
  expect(faultOf([fault("events[0]", "is not a type of event")], "events")).toBe("Entry 1 is not a type of event.");
});

test.each([
  [[], ["name"], undefined],
  [[fault("name", "is in use")], ["name"], "Correct the marked fields."],
  [[fault("tags.env", "is too long")], ["tags"], "Correct the marked fields."],
  [[fault("smtp", "must be given")], ["name"], "smtp must be given."],
  [
    [fault("name", "is in use"), fault("smtp", "must be given")],
    ["name"],
    "Correct the marked fields. smtp must be given.",
  ],
])("faults of %j in a form with %j have the text %s", (faults, fieldNames, text) =>
  expect(refusedText(faults, fieldNames)).toBe(text),
);

import { expect, test } from "vitest";
import { faultOf } from "./use-form.ts";

const fault = (field: string, detail: string) => ({ field, detail, pointer: null, code: "c" });

test("a field has its faults and the faults of its members", () => {
  const faults = [fault("name", "is in use"), fault("tags.env", "is too long"), fault("named", "is no field")];
  expect(faultOf(faults, "name")).toBe("Is in use.");
  expect(faultOf(faults, "tags")).toBe("tags.env is too long.");
  expect(faultOf(faults, "plan_name")).toBeUndefined();
});

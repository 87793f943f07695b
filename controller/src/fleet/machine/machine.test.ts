import { expect, test } from "vitest";
import { machineObject } from "../../../../test/support/machines/machine-object.ts";
import { parseMachine } from "./machine.ts";

test("a machine that was stored before roots had sizes has the one that all had then", () => {
  const { rootBytes: _, ...spec } = machineObject().spec;
  const stored = JSON.stringify({ ...machineObject(), spec });
  expect(parseMachine(stored).spec.rootBytes).toBe(4 * 1024 ** 3);
  const larger = machineObject({ rootBytes: 8 * 1024 ** 3 });
  expect(parseMachine(JSON.stringify(larger))).toEqual(larger);
});

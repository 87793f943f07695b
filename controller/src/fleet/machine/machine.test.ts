import { expect, test } from "vitest";
import { machineObject } from "@holdfast/testing/machines/machine-object.ts";
import { machineKind } from "./machine.ts";

const { metadata, spec, status } = machineObject();
const { software: _, ...others } = spec;
const stored = {
  metadata,
  spec: { ...others, engine: "valkey", version: "8", addedLater: { by: "a later version" } },
  status: { ...status, leftSnapshots: [{ name: "s", reason: "busy", tries: 1, triedAt: 2 }] },
};

test("a stored machine has its software as engine and version, which every version of the controller reads", () => {
  const machine = machineKind.parse(JSON.stringify(stored));
  expect(machine.spec.software).toEqual({ name: "valkey", version: "8" });
  expect(machine.spec).not.toHaveProperty("engine");
  expect(machine.status.staleSnapshots).toHaveLength(1);
  expect(JSON.parse(machineKind.format(machine))).toEqual(stored);
});

import { describe, expect, test } from "vitest";
import { runningMachine } from "../../../../test/support/machine-object.ts";
import { node, runningService } from "../../../../test/support/service-object.ts";
import type { ObservedNode, ObservedService } from "../managed-service-plan.ts";
import type { DataSnapshot } from "../../machine/data-snapshot.ts";
import { newOperation, type OperationObject } from "../../operation/operation.ts";
import { letIn, takeBack, takenBackError, withSnapshot } from "./image-trial.ts";
import type { ImageTrial } from "./way-back.ts";

const now = 1_000_000;
const trial: ImageTrial = { operationId: "op-1", generation: 4 };
const image = { from: "trixie-1", to: "trixie-2", fromVersion: "17.1", toVersion: "17.2" };
const operation = newOperation({
  id: "op-1",
  serviceId: "s",
  organizationId: "o",
  type: "maintenance",
  instanceGeneration: 5,
  now,
  maintenance: { updates: ["trixie-2"], automatic: false, image },
});
const serviceWith = (of: ImageTrial | undefined) =>
  runningService({ id: "s" }, { image: "trixie-2", instanceGeneration: 5, ...(of && { trial: of }) });
const { spec: before } = serviceWith(undefined);
const fault = { code: "engine_failed", message: "It ended." };

describe("an image that is taken back", () => {
  test("takes the data back where nobody can have written", () => {
    const { after, operation: taken } = takeBack(serviceWith({ ...trial, sealed: true }), operation, fault, now);
    expect(after.spec).toMatchObject({ image: "trixie-1", instanceGeneration: 7 });
    expect(after.spec.trial).toEqual({ ...trial, sealed: true, dataBack: true });
    expect(taken.status.dataStay).toBeUndefined();
  });

  test("leaves the data where that is not certain, and never finds it certain later", () => {
    const { after, operation: taken } = takeBack(serviceWith(trial), operation, fault, now);
    expect(after.spec.trial).toEqual({ ...trial, sealed: false });
    expect(taken.status.dataStay).toContain("not certain");
  });

  test("leaves the data where clients were let in, who stay in", () => {
    const open = letIn(serviceWith({ ...trial, sealed: true }), now);
    expect(open.spec).toEqual({ ...before, instanceGeneration: 6 });
    const { after, operation: taken } = takeBack(open, operation, fault, now);
    expect(after.spec).toEqual({ ...before, image: "trixie-1", instanceGeneration: 8 });
    expect(taken.status.dataStay).toContain("what they wrote is kept");
  });
});

describe("what an operation tells of its snapshot", () => {
  const nodeWith = (snapshot: (DataSnapshot & { name: string }) | undefined): ObservedNode => {
    const made = runningMachine(node.id, {});
    const machine = { ...made, status: { ...made.status, ...(snapshot && { snapshot }) } };
    return {
      node,
      machine,
      connected: true,
      instance: undefined,
      isHeld: false,
      isCurrent: true,
      silentHost: undefined,
    };
  };
  const observed = (...snapshots: Parameters<typeof nodeWith>[0][]): ObservedService => ({
    nodes: snapshots.map(nodeWith),
    names: "verified",
    isChanging: false,
  });
  const one = (outcome: DataSnapshot["outcome"], reason = "", name = "op-1") => ({ name, outcome, reason });
  const stays: OperationObject = { ...operation, status: { ...operation.status, dataStay: "Let in." } };

  // biome-ignore format: a table, aligned so that it reads as one
  test.each<[string, OperationObject, ObservedService, DataSnapshot | undefined]>([
    ["nothing before it is known",              operation, observed(undefined),                        undefined],
    ["nothing of an earlier one",               operation, observed(one("taken", "", "op-0")),         undefined],
    ["nothing until it is known of every node", operation, observed(one("taken"), undefined),          undefined],
    ["that it is there",                        operation, observed(one("taken")),                     { outcome: "taken", reason: "" }],
    ["why one node has none",                   operation, observed(one("taken"), one("none", "Full.")), { outcome: "none", reason: "Full." }],
    ["why it was not gone back to",             stays,     observed(one("taken")),                     { outcome: "taken", reason: "Let in." }],
    ["that all went back to it",                operation, observed(one("restored"), one("restored")), { outcome: "restored", reason: "" }],
  ])("%s", (_name, of, world, told) => {
    expect(withSnapshot(of, world).status.snapshot).toEqual(told);
  });

  test("that the data are as they were, when they are", () => {
    const taken = { ...operation, status: { ...operation.status, takenBack: fault } };
    expect(takenBackError(taken)?.message).toMatch(/from 17\.1 again, with all its data\.$/);
    expect(takenBackError(withSnapshot(taken, observed(one("restored"))))?.message).toMatch(
      /data as they were before\.$/,
    );
  });
});

import { describe, expect, test } from "vitest";
import { runningMachine } from "../../../../../test/support/machines/machine-object.ts";
import { node, runningService } from "../../../../../test/support/controller/service-object.ts";
import type { ObservedNode, ObservedService } from "../observed-service.ts";
import type { DataSnapshot } from "#operation/data-snapshot.ts";
import { newOperation, type OperationObject } from "#operation/operation.ts";
import { serviceSubject } from "../managed-service.ts";
import { admitClients, rollBack, rollbackError, trialFault, withSnapshot } from "./image-trial.ts";
import type { ImageTrial } from "./way-back.ts";

const now = 1_000_000;
const trial: ImageTrial = { operationId: "op-1", generation: 4 };
const image = { from: "trixie-1", to: "trixie-2", fromVersion: "17.1", toVersion: "17.2" };
const operation = newOperation({
  id: "op-1",
  subject: serviceSubject("s"),
  organizationId: "o",
  type: "maintenance",
  now,
  work: { updates: ["trixie-2"], automatic: false, image },
});
const serviceWith = (of: ImageTrial | undefined) =>
  runningService({ id: "s" }, { image: "trixie-2", instanceGeneration: 5, ...(of && { trial: of }) });
const { spec: before } = serviceWith(undefined);
const fault = { code: "engine_failed", message: "It ended." };

describe("an image that is rolled back", () => {
  test("takes the data back where nobody can have written", () => {
    const { after, operation: taken } = rollBack(serviceWith({ ...trial, sealed: true }), operation, fault, now);
    expect(after.spec).toMatchObject({ image: "trixie-1", instanceGeneration: 7 });
    expect(after.spec.trial).toEqual({ ...trial, sealed: true, dataBack: true });
    expect(taken.status.outcome?.dataStay).toBeUndefined();
  });

  test("leaves the data where that is not certain, and never finds it certain later", () => {
    const { after, operation: taken } = rollBack(serviceWith(trial), operation, fault, now);
    expect(after.spec.trial).toEqual({ ...trial, sealed: false });
    expect(taken.status.outcome?.dataStay).toContain("not certain");
  });

  test("leaves the data where clients were admitted, who stay in", () => {
    const open = admitClients(serviceWith({ ...trial, sealed: true }), now);
    expect(open.spec).toEqual({ ...before, instanceGeneration: 6 });
    const { after, operation: taken } = rollBack(open, operation, fault, now);
    expect(after.spec).toEqual({ ...before, image: "trixie-1", instanceGeneration: 8 });
    expect(taken.status.outcome?.dataStay).toContain("what they wrote is kept");
  });
});

describe("an upgrade of data", () => {
  const version = { from: "17", to: "18" };
  const work = { updates: [], automatic: false, image: { ...image, to: "sid-1" }, version };
  const of = { id: "op-1", subject: serviceSubject("s"), organizationId: "o", now, work };
  const upgrade = newOperation({ ...of, type: "upgrade" });
  const failed: ObservedNode = {
    node,
    machine: {
      ...runningMachine(node.id, {}),
      status: { ...runningMachine(node.id, {}).status, state: "failed", reason: "No." },
    },
    connected: false,
    instance: undefined,
    isHeld: false,
    isCurrent: true,
    silentHost: undefined,
  };
  const observed = { nodes: [failed] } as unknown as ObservedService;

  test("is rolled back until clients are admitted, and never after", () => {
    expect(trialFault(observed, upgrade, now, serviceWith(trial))).toMatchObject({ code: "machine_failed" });
    expect(trialFault(observed, upgrade, now, serviceWith(undefined))).toBeUndefined();
    expect(trialFault(observed, operation, now, serviceWith(undefined))).toMatchObject({ code: "machine_failed" });
  });

  test("may take longer than another image", () => {
    const still = { nodes: [] } as unknown as ObservedService;
    const later = now + 10 * 60_000;
    expect(trialFault(still, operation, later, serviceWith(trial))).toMatchObject({ code: "not_healthy" });
    expect(trialFault(still, upgrade, later, serviceWith(trial))).toBeUndefined();
    expect(trialFault(still, upgrade, now + 20 * 60_000, serviceWith(trial))).toMatchObject({ code: "not_healthy" });
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
  const stays: OperationObject = { ...operation, status: { ...operation.status, outcome: { dataStay: "Admitted." } } };

  // biome-ignore format: a table, aligned so that it reads as one
  test.each<[string, OperationObject, ObservedService, DataSnapshot | undefined]>([
    ["nothing before it is known",              operation, observed(undefined),                        undefined],
    ["nothing of an earlier one",               operation, observed(one("taken", "", "op-0")),         undefined],
    ["nothing until it is known of every node", operation, observed(one("taken"), undefined),          undefined],
    ["that it is there",                        operation, observed(one("taken")),                     { outcome: "taken", reason: "" }],
    ["why one node has none",                   operation, observed(one("taken"), one("none", "Full.")), { outcome: "none", reason: "Full." }],
    ["why it was not gone back to",             stays,     observed(one("taken")),                     { outcome: "taken", reason: "Admitted." }],
    ["that all went back to it",                operation, observed(one("restored"), one("restored")), { outcome: "restored", reason: "" }],
  ])("%s", (_name, of, world, told) => {
    expect(withSnapshot(of, world).status.outcome?.snapshot).toEqual(told);
  });

  test("that the data are as they were, when they are", () => {
    const taken = { ...operation, status: { ...operation.status, rollback: fault } };
    expect(rollbackError(taken)?.message).toMatch(/from 17\.1 again, with all its data\.$/);
    expect(rollbackError(withSnapshot(taken, observed(one("restored"))))?.message).toMatch(
      /data as they were before\.$/,
    );
  });
});

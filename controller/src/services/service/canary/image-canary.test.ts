import { describe, expect, test } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { node, runningService } from "@holdfast/testing/controller/service-object.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import type { DataSnapshot, OperationObject } from "#operation/operation.ts";
import { serviceSubject } from "../managed-service.ts";
import { admitClients, rollBack, rollbackError, canaryFault, withSnapshotOutcome } from "./image-canary.ts";
import type { ImageCanary } from "./rollback-plan.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations } from "../service-operations.ts";
import { partial } from "@holdfast/testing/partial.ts";

const now = 1_000_000;
const canary: ImageCanary = { operationId: "op-1", generation: 4 };
const image = { from: "trixie-1", to: "trixie-2", fromVersion: "17.1", toVersion: "17.2" };
const operation = newOperation({
  id: "op-1",
  subject: serviceSubject("s"),
  organizationId: "o",
  type: serviceOperations.maintenance,
  now,
  work: { updates: ["trixie-2"], automatic: false, image },
});
const serviceWith = (of: ImageCanary | undefined) =>
  runningService({ id: "s" }, { image: "trixie-2", instanceGeneration: 5, ...(of && { canary: of }) });
const { spec: before } = serviceWith(undefined);
const fault = { code: "engine_failed", message: "It ended." };

describe("an image that is rolled back", () => {
  test("restores the data if no client can have written", () => {
    const { after, operation: taken } = rollBack(serviceWith({ ...canary, writesFenced: true }), operation, fault, now);
    expect(after.spec).toMatchObject({ image: "trixie-1", instanceGeneration: 7 });
    expect(after.spec.canary).toEqual({ ...canary, writesFenced: true, dataRolledBack: true });
    expect(taken.status.outcome?.dataNotRolledBack).toBeUndefined();
  });

  test("leaves the data where that is not certain, and never finds it certain later", () => {
    const { after, operation: taken } = rollBack(serviceWith(canary), operation, fault, now);
    expect(after.spec.canary).toEqual({ ...canary, writesFenced: false });
    expect(taken.status.outcome?.dataNotRolledBack).toContain("not certain");
  });

  test("retains the data if clients were admitted, and they stay admitted", () => {
    const open = admitClients(serviceWith({ ...canary, writesFenced: true }), now);
    expect(open.spec).toEqual({ ...before, instanceGeneration: 6 });
    const { after, operation: taken } = rollBack(open, operation, fault, now);
    expect(after.spec).toEqual({ ...before, image: "trixie-1", instanceGeneration: 8 });
    expect(taken.status.outcome?.dataNotRolledBack).toContain("their writes are retained");
  });
});

describe("an upgrade of data", () => {
  const version = { from: "17", to: "18" };
  const work = { updates: [], automatic: false, image: { ...image, to: "sid-1" }, version };
  const of = { id: "op-1", subject: serviceSubject("s"), organizationId: "o", now, work };
  const upgrade = newOperation({ ...of, type: serviceOperations.upgrade });
  const failed: ObservedNode = {
    node,
    machine: {
      ...runningMachine(node.id, {}),
      status: { ...runningMachine(node.id, {}).status, state: "failed", reason: "No." },
    },
    connected: false,
    instance: undefined,
    stoppedForDrain: false,
    isCurrent: true,
    silentHost: undefined,
  };
  const observed = partial<ObservedService>({ nodes: [failed] });

  test("is rolled back until clients are admitted, and never after", () => {
    expect(canaryFault(observed, upgrade, now, serviceWith(canary))).toMatchObject({ code: "machine_failed" });
    expect(canaryFault(observed, upgrade, now, serviceWith(undefined))).toBeUndefined();
    expect(canaryFault(observed, operation, now, serviceWith(undefined))).toMatchObject({ code: "machine_failed" });
  });

  test("may take longer than another image", () => {
    const still = partial<ObservedService>({ nodes: [] });
    const later = now + 10 * 60_000;
    expect(canaryFault(still, operation, later, serviceWith(canary))).toMatchObject({ code: "not_healthy" });
    expect(canaryFault(still, upgrade, later, serviceWith(canary))).toBeUndefined();
    expect(canaryFault(still, upgrade, now + 20 * 60_000, serviceWith(canary))).toMatchObject({ code: "not_healthy" });
  });
});

describe("the snapshot that an operation reports", () => {
  const nodeWith = (snapshot: (DataSnapshot & { name: string }) | undefined): ObservedNode => {
    const created = runningMachine(node.id, {});
    const machine = { ...created, status: { ...created.status, ...(snapshot && { snapshot }) } };
    return {
      node,
      machine,
      connected: true,
      instance: undefined,
      stoppedForDrain: false,
      isCurrent: true,
      silentHost: undefined,
    };
  };
  const observed = (...snapshots: Parameters<typeof nodeWith>[0][]): ObservedService => ({
    nodes: snapshots.map(nodeWith),
    names: "verified",
    isChanging: false,
  });
  const snapshotOf = (outcome: DataSnapshot["outcome"], reason = "", name = "op-1") => ({ name, outcome, reason });
  const stays: OperationObject = {
    ...operation,
    status: { ...operation.status, outcome: { dataNotRolledBack: "Admitted." } },
  };

  // biome-ignore format: a table, aligned so that it reads as one
  test.each<[string, OperationObject, ObservedService, DataSnapshot | undefined]>([
    ["nothing before it is reported",           operation, observed(undefined),                        undefined],
    ["nothing of an earlier one",               operation, observed(snapshotOf("taken", "", "op-0")),         undefined],
    ["nothing until every node reported it",    operation, observed(snapshotOf("taken"), undefined),          undefined],
    ["that it is there",                        operation, observed(snapshotOf("taken")),                     { outcome: "taken", reason: "" }],
    ["why one node has none",                   operation, observed(snapshotOf("taken"), snapshotOf("none", "Full.")), { outcome: "none", reason: "Full." }],
    ["why it was not restored",                 stays,     observed(snapshotOf("taken")),                     { outcome: "taken", reason: "Admitted." }],
    ["that all went back to it",                operation, observed(snapshotOf("restored"), snapshotOf("restored")), { outcome: "restored", reason: "" }],
  ])("%s", (_name, of, scenario, reported) => {
    expect(withSnapshotOutcome(of, scenario).status.outcome?.snapshot).toEqual(reported);
  });

  test("that the data are as they were, when they are", () => {
    const taken = { ...operation, status: { ...operation.status, rollback: fault } };
    expect(rollbackError(taken)?.message).toMatch(/from 17\.1 again, with all its data\.$/);
    expect(rollbackError(withSnapshotOutcome(taken, observed(snapshotOf("restored"))))?.message).toMatch(
      /data as they were before\.$/,
    );
  });
});

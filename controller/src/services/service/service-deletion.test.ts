import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { silentLog } from "@holdfast/common/log.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { newServiceObject, node, runningService } from "@holdfast/testing/controller/service-object.ts";
import { requests, createServiceScenario } from "@holdfast/testing/controller/service-scenario.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { stuckAfterMs } from "#operation/operation.ts";
import type { ObservedService } from "./reconcile/observed-service.ts";
import { advance } from "./reconcile/service-advance.ts";
import { planManagedService } from "./reconcile/managed-service-plan.ts";
import { requestCommand, requireUnattached } from "./service-commands.ts";
import { requestDeletion } from "./service-deletion.ts";
import { recreated } from "../backup/restore/undelete.ts";

test.each([
  ["of a running service lets its clients go before the final backup", {}, false, true],
  ["for good does not wait for them", {}, true, false],
  ["of a stopped service has no clients to disconnect", { power: "off" } as const, false, false],
])("a deletion %s", (_, spec, skipFinalBackup, isClosed) => {
  const { after } = requestDeletion(runningService({}, spec), { operationId: "op-1", now: 1, skipFinalBackup });
  expect(after.spec.closed).toBe(isClosed ? true : undefined);
  const machine = { spec: { power: "on" }, status: { state: "running" }, metadata: { id: node.id } } as MachineObject;
  const steps = (generation: bigint) =>
    planManagedService(after, {
      nodes: [
        {
          node,
          machine,
          connected: true,
          instance: create(InstanceObservationSchema, { state: "running", generation }),
          stoppedForDrain: false,
          isCurrent: true,
          silentHost: undefined,
        },
      ],
      names: "published",
      isChanging: false,
      awaitsFinalBackup: isClosed,
    }).map(({ kind }) => kind);
  expect(steps(1n)).toEqual(isClosed ? ["converge", "withdrawNames"] : ["withdrawNames"]);
  expect(steps(2n)).toEqual(["withdrawNames"]);
});

test.each([
  ["whose engine responds has a final backup", true, "wanted"],
  ["whose engine does not respond has none", false, undefined],
])("a service in Error %s", (_, isReachable, finalBackup) => {
  const service = runningService({}, {}, { state: "Error" });
  const { after } = requestDeletion(service, { operationId: "op-1", now: 1, isReachable });
  expect(after.spec.finalBackup).toBe(finalBackup);
});

test("an undeleted service admits its clients again", () => {
  const { after } = requestDeletion(runningService(), { operationId: "op-1", now: 1 });
  const from = { kind: "undelete", backupId: "b", targetTime: null } as const;
  const { service } = recreated(after, from, { now: 2, nodeId: "node-2", operationId: "op-2" });
  expect(service.spec).not.toHaveProperty("closed");
  expect(service.spec.instanceGeneration).toBeGreaterThan(after.spec.instanceGeneration);
});

test("a deletion ends with nothing, from every state", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(3), fc.constantFrom(...requests)), { maxLength: 6 }),
      fc.boolean(),
      (request, engine) => {
        const scenario = createServiceScenario({ engine });
        for (const [rounds, command] of request) {
          for (let i = 0; i < rounds; i++) scenario.round(1_000);
          scenario.command(command);
        }
        scenario.command("delete");
        for (let i = 0; i < 6; i++) scenario.round(1_000);
        expect(scenario.service).toBeUndefined();
      },
    ),
    { numRuns: 300 },
  );
});

test("a deletion waits for a silent host without a deadline, and is stuck only when the host answers", () => {
  const request = requestDeletion(newServiceObject().service, { operationId: "op-1", now: 0 });
  const machine = {
    spec: { power: "on", image: "" },
    status: { state: "destroying", reason: "Host east-1 does not answer", address: "127.0.0.2" },
    metadata: { id: node.id, deletionRequestedAt: 1 },
  } as MachineObject;
  const seen = (silentHost: string | undefined): ObservedService => ({
    nodes: [
      { node, machine, connected: false, instance: undefined, stoppedForDrain: false, isCurrent: false, silentHost },
    ],
    names: "absent",
    isChanging: false,
  });
  let { after: service, operation } = request;
  const observation = (silentHost: string | undefined, now: number) => {
    const moved = advance(service, seen(silentHost), operation, now, silentLog);
    service = moved.after;
    operation = moved.operation ?? operation;
    return operation.status;
  };
  expect(observation(undefined, 1)).toMatchObject({ step: "RemoveServer", deadline: 1 + stuckAfterMs });
  expect(observation("east-1", 2)).toMatchObject({ step: "WaitForHost east-1", deadline: null });
  expect(observation("east-1", 100 * stuckAfterMs)).toMatchObject({ state: "running", error: null });
  expect(service.status.health.reason).toBe("The deletion waits: Host east-1 does not answer");
  const restored = 101 * stuckAfterMs;
  expect(observation(undefined, restored)).toMatchObject({ step: "RemoveServer", deadline: restored + stuckAfterMs });
  expect(observation(undefined, restored + stuckAfterMs + 1)).toMatchObject({
    state: "failed",
    error: { code: "stuck" },
  });
});

test.each(["", "orders"])(
  "a service of which an app has attached %j is not deleted, and says how to detach it",
  (database) => {
    const consumer = { attachmentId: "a1", database, text: "app shop", key: "/app/shop", modRevision: 1n };
    const request = { operationId: "op-1", now: 1, consumers: [consumer] };
    const what = database === "" ? "The service" : "The database orders";
    expect(() => requestCommand(runningService(), "delete", undefined, request)).toThrow(
      expect.objectContaining({
        key: "ATTACHMENT_IN_USE",
        detail: `${what} is attached to app shop. Detach it first (attachment a1).`,
      }),
    );
    expect(() => requireUnattached(runningService(), [consumer], "other")).not.toThrow();
  },
);

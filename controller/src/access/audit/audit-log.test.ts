import { type RefusedCall, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { AgentRolloutService } from "@holdfast/proto/holdfast/admin/v1/agent_rollout_pb.ts";
import { HostService } from "@holdfast/proto/holdfast/admin/v1/host_pb.ts";
import { MaintenanceService } from "@holdfast/proto/holdfast/admin/v1/maintenance_pb.ts";
import { IndexService } from "@holdfast/proto/holdfast/v1/index_pb.ts";
import { ManagedServiceService } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { SessionService } from "@holdfast/proto/holdfast/v1/session_pb.ts";
import { methodsOf, testCall } from "@holdfast/testing/api/test-call.ts";
import { expect, test } from "vitest";
import type { NewAudit } from "#kernel/store/outbox-entry.ts";
import { mergeDeclared } from "#kernel/system-declaration.ts";
import { systems } from "../../systems.ts";
import { createRefusalAudit } from "./audit-log.ts";

const principal = {
  kind: "api_key",
  id: "hfk_1",
  name: "hfk_1",
  organizationId: "org-1",
  scopes: new Set([]),
} as const;

const recordedError = new HoldfastError("INDEX_NOT_FOUND", "The service has no such index.");

function setUp() {
  const recorded: NewAudit[] = [];
  const kinds = mergeDeclared(systems, ({ audited }) => audited);
  const { refused: record, wrap } = createRefusalAudit({
    record: (entry) => recorded.push(entry),
    hasEntry: (error) => error === recordedError,
    kinds,
    organizationOfUser: (username) => (username === "anna" ? "org-1" : undefined),
  });
  const refuse = (more: Partial<RefusedCall> = {}) =>
    record({
      method: ManagedServiceService.method.startManagedService,
      principal,
      source: "192.0.2.1",
      requestId: "r",
      error: new HoldfastError("INVALID_REQUEST", "It is not."),
      ...more,
    });
  return { recorded, refuse, wrap };
}

test("a refused change is audited with its caller, method, object and error", () => {
  const { recorded, refuse } = setUp();
  refuse({ input: { id: "service-1" } });
  expect(recorded).toEqual([
    {
      organizationId: "org-1",
      actor: "api_key:hfk_1",
      source: "192.0.2.1",
      action: "managed-service.start invalid_request",
      objectKind: "managed-service",
      objectId: "service-1",
      result: "refused",
      requestId: "r",
    },
  ]);
});

test.each([
  [HostService.method.drainHost, { hostId: "second" }, "host", "second"],
  [AgentRolloutService.method.retryAgentUpgrade, { machineId: "m-1" }, "agent-rollout", "m-1"],
  [MaintenanceService.method.markImageUrgent, { image: "trixie-1" }, "node-image", "trixie-1"],
])("a refused change of the fleet names its object: %o", (method, input, objectKind, objectId) => {
  const { recorded, refuse } = setUp();
  refuse({ method, input });
  expect(recorded).toMatchObject([{ objectKind, objectId }]);
});

test.each([
  ["an act whose entry is stored", recordedError, 0],
  ["another call", new HoldfastError("INDEX_NOT_FOUND", "The service has no such index."), 1],
])("the refusal of %s has one entry", async (_what, error, count) => {
  const { recorded, wrap } = setUp();
  const reject = () => Promise.reject(error);
  const { deleteIndex } = methodsOf(
    IndexService,
    wrap(serve(IndexService, { listIndices: reject, deleteIndex: reject })),
  );
  await expect(deleteIndex({ serviceId: "s", name: "x" }, testCall())).rejects.toBe(error);
  expect(recorded.map(({ action }) => action)).toEqual(Array(count).fill("index.delete index_not_found"));
});

test.each([
  ["anna", "org-1"],
  ["nobody", ""],
])("a failed sign-in of %s is in the audit log of the organization %j", async (username, organizationId) => {
  const { recorded, wrap } = setUp();
  const reject = () => Promise.reject(new HoldfastError("UNAUTHENTICATED", "The password is wrong."));
  const handlers = Object.fromEntries(SessionService.methods.map(({ localName }) => [localName, reject])) as never;
  const { createSession } = methodsOf(SessionService, wrap(serve(SessionService, handlers)));
  const call = { ...testCall(), principal: undefined };
  await expect(createSession({ username, password: "wrong" }, call)).rejects.toThrow();
  expect(recorded).toMatchObject([
    { organizationId, actor: "anonymous", action: "session.create unauthenticated", objectId: username },
  ]);
  expect(JSON.stringify(recorded)).not.toContain("wrong");
});

import { expect, test } from "vitest";
import { newOperation, operationKind, outcomeOf, workOf } from "./operation.ts";

const subject = { kind: "managed-service", id: "service-1" };
const work = { updates: ["trixie-2"], automatic: true, image: null };
const common = { state: "running", step: "StopEngine", progressPct: 10, startedAt: 1, deadline: 2, mark: "m" };

test("an operation that an older version wrote is of its service", () => {
  const stored = {
    metadata: { id: "op-1", name: "restart", organizationId: "org", generation: 1, createdAt: 1, updatedAt: 1 },
    spec: { serviceId: "service-1", type: "restart", instanceGeneration: 4 },
    status: { ...common, finishedAt: null, error: null },
  };
  const operation = operationKind.parse(JSON.stringify(stored));
  expect(operation.spec).toMatchObject({ subject, type: "restart" });
  expect(operation.status).toEqual(stored.status);
  expect(operation.spec).not.toHaveProperty("serviceId");
  expect(workOf(operation, "maintenance")).toBeUndefined();
});

test("maintenance that an older version wrote keeps its work, and what came of it", () => {
  const snapshot = { outcome: "taken", reason: "Clients had been admitted." };
  const takenBack = { code: "engine_failed", message: "It ended." };
  const stored = {
    metadata: { id: "op-1", name: "maintenance", organizationId: "org", generation: 1, createdAt: 1, updatedAt: 1 },
    spec: { serviceId: "service-1", type: "maintenance", instanceGeneration: 4, maintenance: work },
    status: { ...common, takenBack, dataStay: "Clients had been admitted.", snapshot },
  };
  const operation = operationKind.parse(JSON.stringify(stored));
  expect(workOf(operation, "maintenance")).toEqual(work);
  expect(outcomeOf(operation, "maintenance")).toEqual({ dataStay: "Clients had been admitted.", snapshot });
  expect(operation.status).toMatchObject({ ...common, rollback: takenBack });
  expect(operation.status).not.toHaveProperty("snapshot");
  expect(operation.status).not.toHaveProperty("takenBack");
});

test("an operation is read as it was written", () => {
  const of = { id: "op-1", subject, organizationId: "org", now: 5 };
  for (const operation of [newOperation({ ...of, type: "stop" }), newOperation({ ...of, type: "maintenance", work })])
    expect(operationKind.parse(JSON.stringify(operation))).toEqual(operation);
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { uuidv7 } from "uuidv7";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { canceled, completed, failed, operationKind, type OperationObject, progressed } from "./operation.ts";
import { operationGauges } from "./operation-system.ts";
import { newOperation } from "./operation-definition.ts";
import { serviceOperations } from "#services/service/service-operations.ts";

let fixture: TestStore;
beforeAll(async () => {
  fixture = await startTestStore();
});
afterAll(() => fixture?.close());

const beganAt = Date.parse("2026-11-20T10:00:00Z");
const error = { code: "rolled_back", message: "The primary of before has its place again." };

test("failovers are counted by result, with the duration of the last one of each", async () => {
  const [serviceId, another] = ["orders", "another"];
  const failover = (serviceId: string, now: number) =>
    newOperation({
      id: uuidv7(),
      subject: { kind: "managed-service", id: serviceId },
      organizationId: "o",
      type: serviceOperations.failover,
      now,
    });
  const running = (operation: OperationObject, now: number) =>
    progressed(operation, { step: "PromoteReplica", progressPct: 50, mark: "m" }, now);
  const started = (serviceId: string, now: number) => running(failover(serviceId, now), now);
  const unit = fixture.begin();
  for (const operation of [
    completed(started(serviceId, beganAt), beganAt + 9_600),
    completed(started(serviceId, beganAt + 60_000), beganAt + 64_500),
    failed(started(serviceId, beganAt + 90_000), error, beganAt + 120_000),
    canceled(failover(serviceId, beganAt + 130_000), beganAt + 131_000),
    started(serviceId, beganAt + 140_000),
    completed(started(another, beganAt), beganAt + 1_000),
  ])
    unit.create(operationKind, operation);
  await fixture.collections.untilRevision(await unit.commit(), 60_000);

  const readings = operationGauges(fixture.collections.operations, [{ kind: "managed-service" }]).map(
    ({ name, read }) => [
      name,
      Object.fromEntries(
        Array.from(read(serviceId), ({ labels, value }) => [`${labels["type"]} ${labels["result"]}`, value]),
      ),
    ],
  );
  expect(Object.fromEntries(readings)).toEqual({
    operations: { "failover completed": 2, "failover failed": 1, "failover cancelled": 1 },
    operation_last_duration_seconds: { "failover completed": 4.5, "failover failed": 30 },
  });
});

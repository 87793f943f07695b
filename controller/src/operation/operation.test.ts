import { expect, test } from "vitest";
import { operationKind } from "./operation.ts";
import { newOperation } from "./operation-definition.ts";
import { serviceOperations } from "#services/service/service-operations.ts";

const subject = { kind: "managed-service", id: "service-1" };
const work = { updates: ["trixie-2"], automatic: true, image: null };

test("an operation is read as it was written", () => {
  const of = { id: "op-1", subject, organizationId: "org", now: 5 };
  for (const operation of [
    newOperation({ ...of, type: serviceOperations.stop }),
    newOperation({ ...of, type: serviceOperations.maintenance, work }),
  ])
    expect(operationKind.parse(JSON.stringify(operation))).toEqual(operation);
});

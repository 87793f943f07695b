import { expect, test } from "vitest";
import { newOperation, operationKind } from "./operation.ts";

const subject = { kind: "managed-service", id: "service-1" };
const work = { updates: ["trixie-2"], automatic: true, image: null };

test("an operation is read as it was written", () => {
  const of = { id: "op-1", subject, organizationId: "org", now: 5 };
  for (const operation of [newOperation({ ...of, type: "stop" }), newOperation({ ...of, type: "maintenance", work })])
    expect(operationKind.parse(JSON.stringify(operation))).toEqual(operation);
});

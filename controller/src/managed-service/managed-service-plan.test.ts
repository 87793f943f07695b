import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { runningMachine } from "../../../test/support/machine-object.ts";
import { newServiceObject, node } from "../../../test/support/service-object.ts";
import { isHealthy } from "./managed-service-plan.ts";

test.each([
  ["all is well", { liveness: "healthy", listener: "healthy" }, true],
  ["one takes no write", { liveness: "unhealthy", listener: "healthy" }, false],
  ["one is not reached at an address of its own", { liveness: "healthy", listener: "unhealthy" }, false],
  ["one has much to keep on a small disk", { liveness: "healthy", storage: "unhealthy" }, true],
  ["one has an agent that tells nothing of listeners", { liveness: "healthy" }, true],
])("a service's engines are up when %s: %j %s", (_, checks, expected) => {
  const { service } = newServiceObject();
  const instance = create(InstanceObservationSchema, {
    state: "running",
    generation: BigInt(service.spec.instanceGeneration),
    checks: Object.entries(checks).map(([name, status]) => ({ name, status })),
  });
  const observed = {
    node,
    machine: runningMachine(node.id, {}),
    instance,
    connected: true,
    isCurrent: true,
    isHeld: false,
    silentHost: undefined,
  };
  expect(isHealthy(service, { nodes: [observed], names: "verified", isChanging: false })).toBe(expected);
});

import { expect, test } from "vitest";
import { nodeBoundFaults, requireNodesOfParameters, supportedByNodes } from "./node-bounds.ts";

const parameters = { "min.insync.replicas": "3", "log.retention.ms": "1000" };

test("a parameter that needs more nodes than there are is refused with the number of nodes", () => {
  expect(nodeBoundFaults("kafka", parameters, 1)).toEqual([
    {
      field: 'parameters["min.insync.replicas"]',
      pointer: "/parameters/min.insync.replicas",
      code: "exceeds_nodes",
      detail: "min.insync.replicas is at most 1, the number of nodes",
    },
  ]);
  expect(nodeBoundFaults("kafka", parameters, 3)).toEqual([]);
  expect(nodeBoundFaults("postgresql", parameters, 1)).toEqual([]);
});

test("a copy with fewer nodes has the default in its place", () => {
  expect(supportedByNodes("kafka", parameters, 1)).toEqual({ "log.retention.ms": "1000" });
  expect(supportedByNodes("kafka", parameters, 3)).toEqual(parameters);
});

test("a node that a parameter needs is not removed", () => {
  const spec = { databaseType: "kafka", parameters: { "min.insync.replicas": "4" } };
  expect(() => requireNodesOfParameters(spec, 3)).toThrow("min.insync.replicas is 4. Set it to 3 at most first.");
  requireNodesOfParameters(spec, 4);
});

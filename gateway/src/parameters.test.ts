import { ListMetricsExportsRequestSchema } from "@holdfast/proto/holdfast/v1/metrics_export_pb.ts";
import { GetMetricsRequestSchema } from "@holdfast/proto/holdfast/v1/metric_pb.ts";
import { expect, test } from "vitest";
import { createFaults } from "./json/faults.ts";
import { compileQuery } from "./parameters.ts";

const id = "019a2f5e-7c1a-7d3e-9a56-3f0b8c2d4e61";

test.each(["service_id=", "service_id=x", `service_id=${id}0`])("%s is not a valid id in a filter", (query) => {
  const faults = createFaults();
  const into = {};
  compileQuery(ListMetricsExportsRequestSchema.fields)(query, into, faults);
  expect(faults.list).toMatchObject([{ field: "service_id", pointer: null, code: "string_uuid" }]);
  expect(into).toEqual({});
});

test("an id may have capital letters, and a list of ids has each checked", () => {
  const faults = createFaults();
  const into = { nodeId: [] };
  const query = `node_id=${id.toUpperCase()}&node_id=x`;
  compileQuery(GetMetricsRequestSchema.fields)(query, into, faults);
  expect(into.nodeId).toEqual([id.toUpperCase()]);
  expect(faults.list).toMatchObject([{ field: "node_id", code: "string_uuid" }]);
});

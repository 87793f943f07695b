import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { NullValue, ValueSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import { defaultCatalog } from "#catalog/catalog.ts";
import { createEngineOffers } from "#catalog/engine-offer.ts";
import { changedParameters, parameterViews } from "./configuration-plan.ts";

test("a stored parameter that the catalog no longer has can be reset, and no other unknown one", () => {
  const engine = createEngineOffers([]).find(({ databaseType }) => databaseType === "valkey");
  if (engine === undefined) throw new Error("there is no Valkey");
  const { spec } = newServiceObject().service;
  const stored = { ...spec, databaseType: "valkey", version: "8.1", parameters: { activedefrag: "yes", timeout: "9" } };
  const reset = create(ValueSchema, { kind: { case: "nullValue", value: NullValue.NULL_VALUE } });
  const context = { engine, catalog: defaultCatalog, primary: undefined };
  expect(changedParameters(stored, { activedefrag: reset }, context)).toEqual({
    parameters: { timeout: "9" },
    faults: [],
  });
  expect(changedParameters(stored, { activerehashing: reset }, context).faults).toMatchObject([
    { code: "unknown_parameter" },
  ]);
});

const minInSync = "min.insync.replicas";

/** The parameters of a Kafka whose nodes report these values at these generations. */
function viewsOf(
  parameters: Readonly<Record<string, string>>,
  nodes: readonly (readonly [
    generation: number,
    reported: Readonly<Record<string, string>>,
    pendingRestart?: string | undefined,
  ])[],
) {
  const [engine] = createEngineOffers([]).filter(({ databaseType }) => databaseType === "kafka");
  if (engine === undefined) throw new Error("there is no Kafka");
  const { spec } = newServiceObject().service;
  const [node] = spec.nodes;
  if (node === undefined) throw new Error("the service has no node");
  const instances = nodes.map(([generation, effectiveParameters, pendingRestart]) =>
    create(InstanceObservationSchema, {
      generation: BigInt(generation),
      effectiveParameters: { ...effectiveParameters },
      pendingRestart: pendingRestart === undefined ? [] : [pendingRestart],
    }),
  );
  return parameterViews({
    spec: {
      ...spec,
      databaseType: "kafka",
      version: "3.9",
      parameters,
      nodes: nodes.map((_, index) => ({ ...node, id: `node-${index + 1}` })),
      instanceGeneration: 2,
    },
    engine,
    catalog: defaultCatalog,
    primary: instances[0],
    instances,
  });
}

test.each([
  [{}, 1, { value: "1", default: "1", warning: undefined }],
  [{}, 3, { value: "2", default: "2", warning: undefined }],
  [{ [minInSync]: "1" }, 3, { value: "1", default: "2", warning: expect.stringContaining("only one replica") }],
  [{ [minInSync]: "3" }, 3, { value: "3", default: "2", warning: expect.stringContaining("no writes") }],
  [{ [minInSync]: "2" }, 5, { value: "2", default: "2", warning: undefined }],
])("a default by the number of nodes is shown, and a weaker value with a warning: %j, %d nodes", (set, count, view) => {
  const views = viewsOf(
    set,
    Array.from({ length: count }, () => [2, { [minInSync]: view.value }]),
  );
  expect(views[minInSync]).toMatchObject({ ...view, status: "applied" });
});

test("a value that a node does not run with yet is pending, and others are applied", () => {
  const day = { "log.retention.ms": "86400000" };
  const before = { "log.retention.ms": "604800000", "log.cleaner.min.cleanable.ratio": "0.50", [minInSync]: "2" };
  const statusesOf = (views: ReturnType<typeof viewsOf>) =>
    Object.entries(views).flatMap(([name, { status }]) => (status === "applied" ? [] : [[name, status]]));
  const after = { ...before, ...day };
  expect(
    statusesOf(
      viewsOf(day, [
        [2, after],
        [1, before],
        [2, after],
      ]),
    ),
  ).toEqual([["log.retention.ms", "pending"]]);
  expect(
    statusesOf(
      viewsOf(day, [
        [2, after],
        [2, before],
        [2, after],
      ]),
    ),
  ).toEqual([]);
});

test("a default by the number of nodes is pending until each node runs with it", () => {
  const status = (values: readonly string[], set = {}) =>
    viewsOf(
      set,
      values.map((value) => [2, { [minInSync]: value }]),
    )[minInSync]?.status;
  expect(status(["2", "1", "1"])).toBe("pending");
  expect(status(["2", "2", "2"])).toBe("applied");
});

test("a restart of peers is pending until the last one has restarted", () => {
  const threads = { "num.partitions": "3" };
  const status = (pending: readonly (string | undefined)[]) =>
    viewsOf(
      threads,
      pending.map((each) => [2, threads, each]),
    )["num.partitions"]?.status;
  expect(status([undefined, "num.partitions", undefined])).toBe("pending_restart");
  expect(status([undefined, undefined, undefined])).toBe("applied");
});

import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { describe, expect, test } from "vitest";
import { newServiceObject, node } from "@holdfast/testing/controller/service-object.ts";
import { defaultCatalog } from "#catalog/catalog.ts";
import { createEngineOffers } from "#catalog/engine-offer.ts";
import { changedParameters } from "./configuration-plan.ts";

const [engine] = createEngineOffers([{ engine: "postgresql", version: "17", available: true }] as never);
const replica = { ...node, id: "node-2", role: "replica" } as const;

/** Faults of a change on a plan of 2 GiB, with these effective parameters of the primary. */
function faultsOf(change: Readonly<Record<string, string>>, running: Readonly<Record<string, string>>, replicas = 1) {
  if (engine === undefined) throw new Error("there is no PostgreSQL");
  const { spec } = newServiceObject().service;
  const primary = create(InstanceObservationSchema, { effectiveParameters: { ...running } });
  const values = Object.entries(change).map(
    ([name, text]) => [name, create(ValueSchema, { kind: { case: "stringValue", value: text } })] as const,
  );
  const nodes = [node, ...Array.from({ length: replicas }, () => replica)];
  const context = { engine, catalog: defaultCatalog, primary };
  return changedParameters({ ...spec, nodes }, Object.fromEntries(values), context).faults;
}

describe("a parameter together with the minimums of replicas", () => {
  const many = { max_connections: "500", max_locks_per_transaction: "64" };
  const locks = { max_locks_per_transaction: "10000" };

  test("is refused if both exceed the plan, with the greatest possible value", () => {
    expect(faultsOf(locks, many)).toMatchObject([
      {
        code: "exceeds_plan",
        field: "parameters.max_locks_per_transaction",
        detail: expect.stringMatching(
          /: it is \d+ at most while its replicas need max_connections = 500\. Restart the service first\.$/,
        ),
      },
    ]);
  });

  test("is refused with that value also if it exceeds the plan alone", () => {
    const greatest = (fault?: { readonly detail: string }) =>
      Number(/it is (\d+) at most/.exec(fault?.detail ?? "")?.[1]);
    const huge = { max_locks_per_transaction: "100000" };
    const [alone] = faultsOf(huge, many, 0);
    const [beside] = faultsOf(huge, many);
    expect(alone?.detail).not.toContain("replicas");
    expect(greatest(beside)).toBeLessThan(greatest(alone));
    expect(faultsOf({ max_locks_per_transaction: String(greatest(beside)) }, many)).toEqual([]);
  });

  test("is refused in the same change that lowers the other", () => {
    expect(faultsOf({ ...locks, max_connections: "100" }, many)).toHaveLength(1);
  });

  test("is accepted once the primary runs with less, and by a service of one node", () => {
    expect(faultsOf(locks, { ...many, max_connections: "100" })).toEqual([]);
    expect(faultsOf(locks, many, 0)).toEqual([]);
    expect(faultsOf(locks, {})).toEqual([]);
  });

  test("is accepted if both fit the plan", () => {
    expect(faultsOf({ max_locks_per_transaction: "128" }, many)).toEqual([]);
    expect(faultsOf({ max_connections: "100" }, many)).toEqual([]);
  });
});

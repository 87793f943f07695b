import { expect, test } from "vitest";
import { createEngineOffers } from "./engine-offer.ts";
import { planFaults, runnableParameters } from "./parameter-choice.ts";

const engine = createEngineOffers([]).find(({ databaseType }) => databaseType === "postgresql");
if (engine === undefined) throw new Error("the catalog has no PostgreSQL");
const plan = { vcpu: 1, memoryBytes: 2 * 1024 ** 3, storageBytes: 1024 ** 3 };

test("a value above the plan's limit is refused with its name and the maximum", () => {
  expect(planFaults(engine, "17", plan, { max_connections: "5000" }, ["max_connections"])).toEqual([
    {
      field: "parameters.max_connections",
      pointer: "/parameters/max_connections",
      code: "exceeds_plan",
      detail: "this plan has too little memory for max_connections: it is 2048 at most",
    },
  ]);
});

test("parameters that cannot run any more are omitted, the others stay", () => {
  const all = { work_mem: "8MB", transaction_timeout: "1", shared_buffers: "64GB", removed_parameter: "1" };
  expect(runnableParameters(engine, "17", plan, all)).toEqual({ work_mem: "8MB" });
});

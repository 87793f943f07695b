import { HoldfastError } from "@holdfast/common/errors.ts";
import { expect, test } from "vitest";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import { createEngineTasks } from "./engine-task.ts";
import type { ManagedServiceObject } from "./managed-service.ts";

const input = {
  case: "readReplication",
  value: { $typeName: "holdfast.agent.v1.ReadReplication", replacesPrimary: false },
} as const;
const failure = (code: string) => ({ failure: { code, message: code }, output: { case: undefined } });
const answer = { output: { case: "readReplication", value: {} } };

function servedBy(primaryNodeId: string, term: number): ManagedServiceObject {
  const { service } = newServiceObject();
  const nodes = ["a", "b"].map((id) => ({ id, hostname: `${id}.local`, zone: "local" }));
  return { ...service, spec: { ...service.spec, nodes }, status: { ...service.status, primaryNodeId, term } };
}

/** `run` is the agent's response; it may change the store. */
function scenario(run: (machineId: string, state: { stored: ManagedServiceObject }) => unknown) {
  const state = { stored: servedBy("a", 1) };
  const requested: string[] = [];
  const tasks = createEngineTasks({
    fleet: {
      run: async (machineId) => {
        requested.push(machineId);
        return run(machineId, state) as never;
      },
    },
    services: { get: () => ({ object: state.stored, modRevision: 1 }) as never },
    clock: { monotonicMs: () => 0 },
  });
  return {
    requested,
    state,
    run: (service: ManagedServiceObject) => tasks.run(service, input, new AbortController().signal),
  };
}

test("goes to the current primary, even if the caller has an older one", async () => {
  const { requested, state, run } = scenario(() => answer);
  state.stored = servedBy("b", 2);
  await run(servedBy("a", 1));
  expect(requested).toEqual(["b"]);
});

test.each(["not_ready", "stale_term"])("goes to the new primary when the old one says %s", async (code) => {
  const { requested, run } = scenario((machineId, state) => {
    state.stored = servedBy("b", 2);
    return machineId === "a" ? failure(code) : answer;
  });
  await run(servedBy("a", 1));
  expect(requested).toEqual(["a", "b"]);
});

test("is not retried if it may have run, or if nothing changed", async () => {
  const changed = scenario((_, state) => {
    state.stored = servedBy("b", 2);
    return failure("engine_refused");
  });
  await expect(changed.run(servedBy("a", 1))).rejects.toThrow(HoldfastError);
  const same = scenario(() => failure("not_ready"));
  await expect(same.run(servedBy("a", 1))).rejects.toThrow("not_ready");
  expect([changed.requested, same.requested]).toEqual([["a"], ["a"]]);
});

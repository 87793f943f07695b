import { expect, test } from "vitest";
import type { RegisteredController } from "#kernel/runtime/controller-registry.ts";
import { createRevocation } from "./revocation.ts";

const signal = new AbortController().signal;

/** Controller "a" with others, and the response of each. */
function scenario(others: readonly string[], answers: Readonly<Record<string, number>> = {}) {
  const state = { nowMs: 0, ids: ["a", ...others], ownMs: 60_000, startedAt: 1 };
  let answer = () => {};
  const member = (id: string): RegisteredController => ({
    id,
    address: id,
    startedAt: state.startedAt,
    draining: false,
  });
  const revocation = createRevocation({
    controllerRegistry: {
      id: "a",
      controllers: () => state.ids.map(member),
      controller: (id) => (state.ids.includes(id) ? member(id) : undefined),
      liveIds: async () => state.ids,
      subscribe(onChange) {
        answer = onChange;
        return { close() {} };
      },
    },
    controllerCalls: {
      async revokePrimaryLease(address) {
        const answer = answers[address];
        if (answer === undefined) throw new Error("no answer");
        return answer;
      },
    },
    primaryLeases: { revoke: () => state.ownMs },
    bootMs: () => state.nowMs,
  });
  const revoke = () => revocation.revoke("m", 1n, signal);
  return { state, revoke, answer: () => answer() };
}

test("the most recent grant of all controllers counts", async () => {
  const { state, revoke } = scenario(["b", "c"], { b: 9_000, c: 4_000 });
  state.nowMs = 60_000;
  expect(await revoke()).toBe(4_000);
  state.ownMs = 3_000;
  expect(await revoke()).toBe(3_000);
});

test("the result is undefined while a controller does not respond", async () => {
  const { state, revoke } = scenario(["b", "c"], { b: 9_000 });
  state.nowMs = 60_000;
  expect(await revoke()).toBeUndefined();
});

test("a new controller proves at most its own uptime", async () => {
  const { state, revoke } = scenario([]);
  state.nowMs = 2_000;
  expect(await revoke()).toBe(2_000);
});

test("a controller that left or restarted may have granted leases until then", async () => {
  const { state, revoke, answer } = scenario(["b"], { b: 60_000 });
  state.nowMs = 100_000;
  state.startedAt = 2;
  answer();
  state.nowMs += 5_000;
  expect(await revoke()).toBe(5_000);
  state.ids = ["a"];
  answer();
  state.nowMs += 1_000;
  expect(await revoke()).toBe(1_000);
});

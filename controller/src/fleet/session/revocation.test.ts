import { expect, test } from "vitest";
import type { Member } from "#kernel/runtime/membership.ts";
import { createRevocation } from "./revocation.ts";

const signal = new AbortController().signal;

/** This controller, "a", among others, and what each says when it is asked. */
function world(others: readonly string[], answers: Readonly<Record<string, number>> = {}) {
  const state = { nowMs: 0, ids: ["a", ...others], ownMs: 60_000, startedAt: 1 };
  let tell = () => {};
  const member = (id: string): Member => ({ id, address: id, startedAt: state.startedAt, draining: false });
  const revocation = createRevocation({
    membership: {
      id: "a",
      members: () => state.ids.map(member),
      member: (id) => (state.ids.includes(id) ? member(id) : undefined),
      listed: async () => state.ids,
      subscribe(onChange) {
        tell = onChange;
        return { close() {} };
      },
    },
    peers: {
      async revokeRight(address) {
        const answer = answers[address];
        if (answer === undefined) throw new Error("no answer");
        return answer;
      },
    },
    rights: { revoke: () => state.ownMs },
    bootMs: () => state.nowMs,
  });
  const revoke = () => revocation.revoke("m", 1n, signal);
  return { state, revoke, tell: () => tell() };
}

test("the last grant of all controllers counts", async () => {
  const { state, revoke } = world(["b", "c"], { b: 9_000, c: 4_000 });
  state.nowMs = 60_000;
  expect(await revoke()).toBe(4_000);
  state.ownMs = 3_000;
  expect(await revoke()).toBe(3_000);
});

test("nothing is known while one of them does not answer", async () => {
  const { state, revoke } = world(["b", "c"], { b: 9_000 });
  state.nowMs = 60_000;
  expect(await revoke()).toBeUndefined();
});

test("a controller that is new does not know who was there before", async () => {
  const { state, revoke } = world([]);
  state.nowMs = 2_000;
  expect(await revoke()).toBe(2_000);
});

test("one that left, or was started anew, may have granted until then", async () => {
  const { state, revoke, tell } = world(["b"], { b: 60_000 });
  state.nowMs = 100_000;
  state.startedAt = 2;
  tell();
  state.nowMs += 5_000;
  expect(await revoke()).toBe(5_000);
  state.ids = ["a"];
  tell();
  state.nowMs += 1_000;
  expect(await revoke()).toBe(1_000);
});

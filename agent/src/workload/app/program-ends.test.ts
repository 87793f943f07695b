import { expect, test } from "vitest";
import { createProgramEnds } from "./program-ends.ts";

function opened() {
  const state = { now: 1_764_500_000_000, kills: 0 };
  const printed: string[] = [];
  const ends = createProgramEnds({
    memory: { mark: async () => state.kills, killedSince: async (mark) => state.kills > mark },
    print: (level, message) => printed.push(`${level} ${message}`),
    now: () => state.now,
  });
  return { state, printed, ends };
}

test.each([
  [{ code: 9, signal: null }, "ended with the exit code 9"],
  [{ code: 0, signal: null }, "ended with the exit code 0"],
  [{ code: 137, signal: null }, "ended with the exit code 137 (SIGKILL)"],
  [{ code: 139, signal: null }, "ended with the exit code 139 (SIGSEGV)"],
  [{ code: 200, signal: null }, "ended with the exit code 200"],
  [{ code: null, signal: "SIGKILL" }, "ended by SIGKILL"],
  [null, "ended"],
])("the exit %j is described", async (exit, how) => {
  const { ends, printed } = opened();
  expect(await ends.note("a", exit)).toBe(`The program ${how} and is started again.`);
  expect(printed).toEqual([`error The program ${how} and is started again.`]);
});

test("a kill for want of memory is one since the start of the run", async () => {
  const { ends, state } = opened();
  const exit = { code: 137, signal: null };
  state.kills = 1;
  expect(await ends.beforeReady("a", exit)).toBe("The program was killed before it was ready: out of memory.");
  await ends.started("a");
  expect(await ends.beforeReady("a", exit)).toBe(
    "The program ended before it was ready, with the exit code 137 (SIGKILL).",
  );
  state.kills = 2;
  expect(await ends.beforeReady("a", { code: 1, signal: null })).toBe(
    "The program ended before it was ready, with the exit code 1.",
  );
  expect(await ends.note("a", exit)).toBe("The program was killed (out of memory) and is started again.");
});

test("ends degrade the check for ten minutes", async () => {
  const { ends, state } = opened();
  expect(ends.check()).toEqual({ name: "program", status: "healthy", reason: "" });
  await ends.note("a", { code: 9, signal: null });
  await ends.note("a", { code: 3, signal: null });
  expect(ends.check()).toEqual({
    name: "program",
    status: "degraded",
    reason: "The program ended with the exit code 3 at 2025-11-30T10:53:20.000Z; it was started again 2 times.",
  });
  state.now += 600_000;
  expect(ends.check().status).toBe("healthy");
});

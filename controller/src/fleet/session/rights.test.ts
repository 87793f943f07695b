import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { rightMs } from "@holdfast/common/right.ts";
import { RightRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { createRights } from "./rights.ts";
import type { Session } from "./session.ts";

/** Rights of a controller that knows all that is stored, by a clock that is set here. */
function world() {
  const state = { nowMs: 1_000, refusal: undefined as string | undefined };
  const rights = createRights({
    rules: { refusal: () => state.refusal, reached: async () => undefined },
    revision: async () => 1n,
    hasLease: () => true,
    bootMs: () => state.nowMs,
    onChange: () => undefined,
    log: silentLog,
  });
  const sent: unknown[] = [];
  const session = { machineId: "m", send: (frame: unknown) => sent.push(frame) } as unknown as Session;
  const ask = (term = 1n, engineSilent = false) =>
    rights.request(session, create(RightRequestSchema, { serviceId: "s", term, number: 1n, engineSilent }));
  const answered = () => Object.fromEntries(rights.answered());
  return { state, rights, ask, answered, sent };
}

test("each request is answered and counted once", async () => {
  const { state, ask, answered, sent } = world();
  await ask();
  state.refusal = "another node is the primary";
  await ask();
  expect(answered()).toEqual({ granted: 1, late: 0, refused: 1 });
  expect(sent).toMatchObject([{ value: { granted: true } }, { value: { granted: false, reason: state.refusal } }]);
});

test("a right is late that is granted when half of the last one is over, under the same term", async () => {
  const { state, ask, answered } = world();
  await ask();
  state.nowMs += rightMs / 2;
  await ask();
  expect(answered()).toMatchObject({ granted: 2, late: 0 });
  state.nowMs += rightMs / 2 + 1;
  await ask();
  expect(answered()).toMatchObject({ granted: 2, late: 1 });
  state.nowMs += rightMs;
  await ask(2n);
  expect(answered()).toMatchObject({ granted: 3, late: 1 });
});

test("a right that is revoked is granted no more under its term, and the last grant is told", async () => {
  const { state, rights, ask, answered } = world();
  state.nowMs += 500;
  expect(rights.revoke("m", 1n)).toBe(500);
  await ask(2n);
  state.nowMs += 700;
  expect(rights.revoke("m", 2n)).toBe(700);
  await ask(2n);
  await ask(1n);
  // An order that comes late takes nothing back.
  rights.revoke("m", 1n);
  await ask(2n);
  expect(answered()).toMatchObject({ granted: 1, refused: 3 });
  await ask(3n);
  expect(answered()).toMatchObject({ granted: 2, refused: 3 });
});

test("a machine is silent whose request is late, or whose engine is, until it is forgotten", async () => {
  const { state, rights, ask } = world();
  const silent = () => rights.silent().get("m");
  await ask();
  expect(silent()).toBeUndefined();
  state.nowMs += 2_000;
  expect(silent()).toMatchObject({ askedAgoMs: 2_000, isEngineSilent: false });
  await ask(1n, true);
  expect(silent()).toMatchObject({ askedAgoMs: 0, isEngineSilent: true });
  state.nowMs += 60_000;
  expect(silent()).toBeUndefined();
});

test("what a machine was silent about ends with its stream, and its last grant does not", async () => {
  const { state, rights, ask } = world();
  await ask(1n, true);
  state.nowMs += 20_000;
  rights.opened("m");
  rights.opened("never asked");
  expect(rights.silent().size).toBe(0);
  expect(rights.heard("m")).toEqual({ askedAgoMs: 0, grantedAgoMs: 20_000, isEngineSilent: false });
  expect(rights.heard("never asked")).toBeUndefined();
});

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { TaskResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { describe, expect, test } from "vitest";
import { runningService } from "../../../../../test/support/controller/service-object.ts";
import type { TaskState } from "#fleet/task/task.ts";
import { newOperation } from "#operation/operation.ts";
import { serviceSubject } from "../../service/managed-service.ts";
import { type EngineChange, type EngineChangeStatus, newEngineChange } from "./engine-change.ts";
import { type ObservedChange, planEngineChange, planSettled } from "./engine-change-plan.ts";
import { settledOutcomeOf, settleInputOf } from "./engine-change-task.ts";

const now = 1_000_000;
const late = now + 10 * 60_000 + 1;
const tooLate = now + 11 * 60_000;
const ids = { serviceId: "s", organizationId: "o", operationId: "op" };
const drop: EngineChange = { type: "delete_user", username: "u" };

function change(of: EngineChange = drop, status: Partial<EngineChangeStatus> = {}) {
  const made = newEngineChange({ ...ids, change: of, now });
  return { ...made, status: { ...made.status, ...status } };
}

const service = runningService();
const leaving = runningService({ deletionRequestedAt: now });
const tried = runningService({}, { trial: { operationId: "op-1", generation: 1 } });
const off = runningService({}, { power: "off" });

function observed(over: Partial<ObservedChange> = {}): ObservedChange {
  const subject = serviceSubject("s");
  const operation = newOperation({ id: "op", subject, organizationId: "o", type: "delete_user", now });
  return { operation, service, connected: true, before: 0, task: undefined, ...over };
}

function ended(result: MessageInitShape<typeof TaskResultSchema>): TaskState {
  return { status: "completed", progress: undefined, result: create(TaskResultSchema, result) };
}
const failed = (code: string) => ended({ failure: { code, message: "why" } });
const running: TaskState = { status: "running", progress: undefined, result: undefined };
const existed = (was: boolean) => ended({ output: { case: "dropEngineUser", value: { existed: was } } });

describe("a change of what is in an engine", () => {
  test.each([
    ["is given to its machine, with the time that is left", {}, now, { kind: "submit", deadlineMs: 600_000 }],
    ["waits for an agent", { connected: false }, now, { kind: "wait", step: "WaitForMachine" }],
    ["fails when no agent came", { connected: false }, late, { kind: "fail", code: "machine_unreachable" }],
    ["fails when its engine stays stopped", { service: off }, late, { kind: "fail", code: "engine_stopped" }],
    ["fails when its turn never came", { before: 4 }, late, { kind: "fail", code: "engine_busy" }],
    ["waits for an engine that was stopped", { service: off }, now, { kind: "wait", step: "WaitForEngine" }],
    ["waits while another image is tried", { service: tried }, now, { kind: "wait", step: "WaitForEngine" }],
    ["waits while four others are at work", { before: 4 }, now, { kind: "wait", step: "WaitForTurn" }],
    ["waits for its task", { task: running }, late, { kind: "wait", step: "WaitForEngine" }],
    ["ends when the engine has it", { task: existed(true) }, now, { kind: "taken", role: "" }],
    ["goes with its service", { service: leaving, task: running }, now, { kind: "cancel" }],
    ["goes with a service that is gone", { service: undefined }, now, { kind: "cancel" }],
    [
      "is tried again when nobody knows what came of it",
      { task: failed("failed") },
      now,
      { kind: "tryAgain", afterMs: 1_000, isUncertain: true },
    ],
    [
      "is tried again while others hold it",
      { task: failed("engine_busy") },
      now,
      { kind: "tryAgain", isUncertain: false },
    ],
    [
      "fails when they held it for too long",
      { task: failed("engine_busy") },
      late,
      { kind: "fail", code: "engine_busy" },
    ],
    ["fails when its engine was not there", { task: failed("not_ready") }, late, { kind: "fail", code: "not_ready" }],
    ["is not tried past its deadline, but asked for", { task: failed("deadline_passed") }, late, { kind: "settle" }],
    [
      "is given up when the machine is silent then",
      { task: failed("deadline_passed"), connected: false },
      late,
      { kind: "giveUp", code: "outcome_unknown" },
    ],
    ["is given up when the machine does not say", { task: failed("failed") }, tooLate, { kind: "giveUp" }],
    [
      "fails when the engine refuses",
      { task: failed("engine_refused") },
      now,
      { kind: "fail", code: "engine_refused" },
    ],
  ] satisfies [string, Partial<ObservedChange>, number, object][])("%s", (_, over, at, step) => {
    expect(planEngineChange(change(), observed(over), at)).toMatchObject(step);
  });

  test("that removes what is not there fails, unless an earlier attempt may have removed it", () => {
    const task = existed(false);
    expect(planEngineChange(change(), observed({ task }), now)).toMatchObject({ code: "database_user_not_found" });
    expect(planEngineChange(change(drop, { attempt: 2 }), observed({ task }), now)).toEqual({
      kind: "taken",
      role: "",
    });
  });

  test.each([
    ["is asked for, where an attempt before it may have brought it", { isUncertain: true }, {}, { kind: "settle" }],
    [
      "is asked for, where that one may have and this one did not",
      { isUncertain: true },
      { task: failed("engine_busy") },
      { kind: "settle" },
    ],
    [
      "is given up, where that one may have and the machine is silent",
      { isUncertain: true },
      { connected: false },
      { kind: "giveUp" },
    ],
  ] satisfies [string, Partial<EngineChangeStatus>, Partial<ObservedChange>, object][])(
    "past its deadline %s",
    (_, status, over, step) => {
      expect(planEngineChange(change(drop, status), observed(over), late)).toMatchObject(step);
    },
  );

  test("that was given up is never tried again: its engine is asked as soon as it is there", () => {
    const step = (over: Partial<ObservedChange>) =>
      planEngineChange(change(drop, { isGivenUp: true, isUncertain: true }), observed(over), now);
    expect(step({ connected: false })).toEqual({ kind: "wait", step: "WaitForMachine" });
    expect(step({ service: off })).toEqual({ kind: "wait", step: "WaitForEngine" });
    expect(step({ operation: undefined, before: 9 })).toEqual({ kind: "settle" });
    expect(step({ task: failed("engine_busy") })).toEqual({ kind: "settle" });
    expect(step({ service: leaving })).toEqual({ kind: "cancel" });
  });

  test("ends by what the engine has, with all its attempts withdrawn", () => {
    const { value } = settleInputOf(change(drop, { attempt: 2 }));
    expect(value).toMatchObject({ withdrawnTasks: ["op-1", "op-2"], change: { case: "dropEngineUser" } });
    const settled = (result: MessageInitShape<typeof TaskResultSchema>) =>
      planSettled(settledOutcomeOf(create(TaskResultSchema, result)));
    const answer = (taken: boolean) => settled({ output: { case: "settleEngineChange", value: { taken, role: "r" } } });
    expect(answer(true)).toEqual({ kind: "taken", role: "r" });
    expect(answer(false)).toMatchObject({ kind: "fail", code: "deadline_passed" });
    expect(settled({ failure: { code: "not_supported" } })).toMatchObject({ kind: "fail", code: "outcome_unknown" });
    expect(settled({ failure: { code: "failed" } })).toMatchObject({ kind: "wait" });
  });

  test("tells the role that the engine gave, and a name that another database has", () => {
    const put = ended({ output: { case: "putEngineUser", value: { changed: true, role: "readonly" } } });
    expect(planEngineChange(change(), observed({ task: put }), now)).toEqual({ kind: "taken", role: "readonly" });
    const made = ended({ output: { case: "createEngineDatabase", value: { created: false } } });
    const database = change({ type: "create_database", name: "d", owner: "app_user" });
    expect(planEngineChange(database, observed({ task: made }), now)).toMatchObject({ code: "name_taken" });
  });
});

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { TaskResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { describe, expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { TaskState } from "#fleet/task/task.ts";
import { serviceSubject } from "../../service/managed-service.ts";
import { type EngineChange, type EngineChangeStatus, newEngineChange } from "./engine-change.ts";
import { type ObservedChange, planEngineChange, planSettled } from "./engine-change-plan.ts";
import { settledOutcomeOf, settleInputOf } from "./engine-change-task.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { engineOperations } from "./engine-operations.ts";

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
const tried = runningService({}, { canary: { operationId: "op-1", generation: 1 } });
const off = runningService({}, { power: "off" });

function observed(over: Partial<ObservedChange> = {}): ObservedChange {
  const subject = serviceSubject("s");
  const operation = newOperation({ id: "op", subject, organizationId: "o", type: engineOperations.delete_user, now });
  return { operation, service, connected: true, earlierChanges: 0, task: undefined, ...over };
}

function ended(result: MessageInitShape<typeof TaskResultSchema>): TaskState {
  return { status: "completed", progress: undefined, result: create(TaskResultSchema, result) };
}
const failed = (code: string) => ended({ failure: { code, message: "why" } });
const running: TaskState = { status: "running", progress: undefined, result: undefined };
const existed = (was: boolean) => ended({ output: { case: "dropEngineUser", value: { existed: was } } });

describe("a change of a user or database", () => {
  test.each([
    ["is submitted with the remaining time", {}, now, { kind: "submit", deadlineMs: 600_000 }],
    ["waits for an agent", { connected: false }, now, { kind: "wait", step: "WaitForMachine" }],
    ["fails when no agent connected", { connected: false }, late, { kind: "fail", code: "machine_unreachable" }],
    ["fails when its engine stays stopped", { service: off }, late, { kind: "fail", code: "engine_stopped" }],
    ["fails when it never was next", { earlierChanges: 4 }, late, { kind: "fail", code: "engine_busy" }],
    ["waits for an engine that was stopped", { service: off }, now, { kind: "wait", step: "WaitForEngine" }],
    ["waits during a canary of another image", { service: tried }, now, { kind: "wait", step: "WaitForEngine" }],
    ["waits while four others run", { earlierChanges: 4 }, now, { kind: "wait", step: "WaitForTurn" }],
    ["waits for its task", { task: running }, late, { kind: "wait", step: "WaitForEngine" }],
    ["ends when the engine has applied it", { task: existed(true) }, now, { kind: "applied", role: "" }],
    ["is canceled with its service", { service: leaving, task: running }, now, { kind: "cancel" }],
    ["is canceled if its service was deleted", { service: undefined }, now, { kind: "cancel" }],
    [
      "is repeated when its outcome is unknown",
      { task: failed("failed") },
      now,
      { kind: "tryAgain", afterMs: 1_000, isUncertain: true },
    ],
    [
      "is repeated while the engine is busy",
      { task: failed("engine_busy") },
      now,
      { kind: "tryAgain", isUncertain: false },
    ],
    [
      "fails when the engine was busy for too long",
      { task: failed("engine_busy") },
      late,
      { kind: "fail", code: "engine_busy" },
    ],
    ["fails when its engine was not ready", { task: failed("not_ready") }, late, { kind: "fail", code: "not_ready" }],
    ["is settled, not repeated, past its deadline", { task: failed("deadline_passed") }, late, { kind: "settle" }],
    [
      "is given up when the machine is disconnected then",
      { task: failed("deadline_passed"), connected: false },
      late,
      { kind: "giveUp", code: "outcome_unknown" },
    ],
    ["is given up when the machine does not report", { task: failed("failed") }, tooLate, { kind: "giveUp" }],
    [
      "fails when the engine refuses it",
      { task: failed("engine_refused") },
      now,
      { kind: "fail", code: "engine_refused" },
    ],
  ] satisfies [string, Partial<ObservedChange>, number, object][])("%s", (_, over, at, step) => {
    expect(planEngineChange(change(), observed(over), at)).toMatchObject(step);
  });

  test("that deletes an absent object fails, unless an earlier attempt may have deleted it", () => {
    const task = existed(false);
    expect(planEngineChange(change(), observed({ task }), now)).toMatchObject({ code: "database_user_not_found" });
    expect(planEngineChange(change(drop, { attempt: 2 }), observed({ task }), now)).toEqual({
      kind: "applied",
      role: "",
    });
  });

  test.each([
    ["is settled, if an earlier attempt may have applied it", { isUncertain: true }, {}, { kind: "settle" }],
    [
      "is settled, if an earlier attempt may have applied it and this one did not",
      { isUncertain: true },
      { task: failed("engine_busy") },
      { kind: "settle" },
    ],
    [
      "is given up, if an earlier attempt may have applied it and the machine is disconnected",
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

  test("that was given up is not repeated: the engine's state is read once it is connected", () => {
    const step = (over: Partial<ObservedChange>) =>
      planEngineChange(change(drop, { isGivenUp: true, isUncertain: true }), observed(over), now);
    expect(step({ connected: false })).toEqual({ kind: "wait", step: "WaitForMachine" });
    expect(step({ service: off })).toEqual({ kind: "wait", step: "WaitForEngine" });
    expect(step({ operation: undefined, earlierChanges: 9 })).toEqual({ kind: "settle" });
    expect(step({ task: failed("engine_busy") })).toEqual({ kind: "settle" });
    expect(step({ service: leaving })).toEqual({ kind: "cancel" });
  });

  test("ends with the engine's state, with all attempts withdrawn", () => {
    const { value } = settleInputOf(change(drop, { attempt: 2 }));
    expect(value).toMatchObject({ withdrawnTasks: ["op-1", "op-2"], change: { case: "dropEngineUser" } });
    const settled = (result: MessageInitShape<typeof TaskResultSchema>) =>
      planSettled(settledOutcomeOf(create(TaskResultSchema, result)));
    const answer = (taken: boolean) => settled({ output: { case: "settleEngineChange", value: { taken, role: "r" } } });
    expect(answer(true)).toEqual({ kind: "applied", role: "r" });
    expect(answer(false)).toMatchObject({ kind: "fail", code: "deadline_passed" });
    expect(settled({ failure: { code: "not_supported" } })).toMatchObject({ kind: "fail", code: "outcome_unknown" });
    expect(settled({ failure: { code: "failed" } })).toMatchObject({ kind: "wait" });
  });

  test.each([
    [true, { kind: "applied", role: "readonly" }],
    [false, { kind: "fail", code: "not_supported" }],
  ])("that requests REPLICATION is applied only if the agent reports it: %s", (replication, step) => {
    const output = { case: "putEngineUser", value: { changed: true, role: "readonly", replication } } as const;
    const update: EngineChange = { type: "update_user", username: "u", replication: true };
    expect(planEngineChange(change(update), observed({ task: ended({ output }) }), now)).toMatchObject(step);
  });

  test("returns the engine's role, and a name conflict with another database", () => {
    const put = ended({ output: { case: "putEngineUser", value: { changed: true, role: "readonly" } } });
    expect(planEngineChange(change(), observed({ task: put }), now)).toEqual({ kind: "applied", role: "readonly" });
    const made = ended({ output: { case: "createEngineDatabase", value: { created: false } } });
    const database = change({ type: "create_database", name: "d", owner: "app_user" });
    expect(planEngineChange(database, observed({ task: made }), now)).toMatchObject({ code: "name_taken" });
  });
});

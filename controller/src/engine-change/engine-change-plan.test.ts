import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { TaskResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { describe, expect, test } from "vitest";
import type { TaskState } from "../fleet/task/task.ts";
import type { ManagedServiceObject } from "../managed-service/managed-service.ts";
import { newOperation } from "../operation/operation.ts";
import { type EngineChange, newEngineChange } from "./engine-change.ts";
import { type ObservedChange, planEngineChange } from "./engine-change-plan.ts";

const now = 1_000_000;
const late = now + 11 * 60_000;
const ids = { serviceId: "s", organizationId: "o", operationId: "op" };
const drop: EngineChange = { type: "delete_user", username: "u" };

function change(of: EngineChange = drop, attempt = 1) {
  return { ...newEngineChange({ ...ids, change: of, now }), status: { attempt } };
}

const service = { metadata: {}, spec: { power: "on" } } as unknown as ManagedServiceObject;
const leaving = { ...service, metadata: { deletionRequestedAt: now } } as ManagedServiceObject;
const off = { ...service, spec: { power: "off" } } as ManagedServiceObject;

function observed(over: Partial<ObservedChange> = {}): ObservedChange {
  const operation = newOperation({ ...ids, id: "op", type: "delete_user", instanceGeneration: 1, now });
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
    ["is tried once more after its deadline, to know", {}, late, { kind: "submit", deadlineMs: 10_000 }],
    ["waits for an agent", { connected: false }, late, { kind: "wait", step: "WaitForMachine" }],
    ["waits for an engine that was stopped", { service: off }, now, { kind: "wait", step: "WaitForEngine" }],
    ["waits while four others are at work", { before: 4 }, now, { kind: "wait", step: "WaitForTurn" }],
    ["waits for its task", { task: running }, late, { kind: "wait", step: "WaitForEngine" }],
    ["ends when the engine has it", { task: existed(true) }, now, { kind: "taken", role: "" }],
    ["goes with its service", { service: leaving, task: running }, now, { kind: "cancel" }],
    ["goes with a service that is gone", { service: undefined }, now, { kind: "cancel" }],
    ["is tried again when nobody knows what came of it", { task: failed("failed") }, late, { kind: "tryAgain" }],
    ["is tried again when its time is over", { task: failed("deadline_passed") }, late, { kind: "tryAgain" }],
    ["is tried again while others hold it", { task: failed("engine_busy") }, now, { kind: "tryAgain" }],
    [
      "fails when they held it for too long",
      { task: failed("engine_busy") },
      late,
      { kind: "fail", code: "engine_busy" },
    ],
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
    expect(planEngineChange(change(drop, 2), observed({ task }), now)).toEqual({ kind: "taken", role: "" });
  });

  test("tells the role that the engine gave, and a name that another database has", () => {
    const put = ended({ output: { case: "putEngineUser", value: { changed: true, role: "readonly" } } });
    expect(planEngineChange(change(), observed({ task: put }), now)).toEqual({ kind: "taken", role: "readonly" });
    const made = ended({ output: { case: "createEngineDatabase", value: { created: false } } });
    const database = change({ type: "create_database", name: "d", owner: "app_user" });
    expect(planEngineChange(database, observed({ task: made }), now)).toMatchObject({ code: "name_taken" });
  });
});

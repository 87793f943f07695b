import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { testCall } from "@holdfast/testing/api/test-call.ts";
import { createAsynchronousTasks, type TaskRecord } from "./asynchronous-tasks.ts";
import { createTaskIds, type TaskRef } from "./task-ids.ts";

const ids = createTaskIds(createSealer({ current: "1", keys: new Map([["1", randomBytes(32)]]) }));
const record: TaskRecord = {
  status: "completed",
  result: '{"message_ids":[1]}',
  error: undefined,
  createdAt: 1_000,
  finishedAt: 2_000,
};
const known = new Map([["k1", record]]);
const tasks = createAsynchronousTasks(ids, [
  { type: "queue_enqueue", scope: "services:data", read: async ({ key }) => known.get(key) },
]);
const ref: TaskRef = { type: "queue_enqueue", serviceId: "s", key: "k1", detail: "jobs" };
const principal = { kind: "user", id: "anna", name: "anna", scopes: new Set(["services:data"]) } as const;
const call = testCall({ principal: { ...principal, organizationId: "o" } });
const foreignCall = testCall({ principal: { ...principal, organizationId: "p" } });

test("a task id is opaque and stable, and its result can be read with it", async () => {
  const id = ids.seal(call, ref);
  expect(id).toMatch(/^1a\.[\w-]+$/);
  expect(ids.seal(call, ref)).toBe(id);
  expect(ids.seal(call, { ...ref, key: "k2" })).not.toBe(id);
  const task = await tasks.get(id, call);
  expect(task).toMatchObject({ taskId: id, type: "queue_enqueue" });
  expect(Buffer.from(task.result ?? []).toString()).toBe('{"message_ids":[1]}');
});

test("foreign, invented, expired and unintended task ids are not found", async () => {
  const id = ids.seal(call, ref);
  const flipped = id.slice(0, -2) + (id.at(-2) === "A" ? "B" : "A") + id.slice(-1);
  for (const [taskId, presenting] of [
    [id, foreignCall],
    [flipped, call],
    ["1a.", call],
    ["k1", call],
    [ids.seal(call, { ...ref, key: "k2" }), call],
    [ids.seal(call, { ...ref, type: "other" }), call],
  ] as const)
    await expect(tasks.get(taskId, presenting)).rejects.toMatchObject({ key: "TASK_NOT_FOUND" });
  await expect(tasks.get(id, call, ({ detail }) => detail === "others")).rejects.toMatchObject({
    key: "TASK_NOT_FOUND",
  });
});

test("a task needs the scope of the method that returned its id", async () => {
  const reader = testCall({ principal: { ...principal, organizationId: "o", scopes: new Set(["services:read"]) } });
  await expect(tasks.get(ids.seal(call, ref), reader)).rejects.toMatchObject({ key: "SCOPE_MISSING" });
});

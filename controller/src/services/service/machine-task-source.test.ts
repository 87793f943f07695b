import { create } from "@bufbuild/protobuf";
import { TaskResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import { testCall } from "@holdfast/testing/api/test-call.ts";
import type { TaskObject, TaskRequest, TaskState } from "#fleet/task/task.ts";
import { createTaskIds } from "#operation/task/task-ids.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { createMachineTasks } from "./machine-task-source.ts";

const ids = createTaskIds(createSealer({ current: "1", keys: new Map([["1", randomBytes(32)]]) }));
const { service } = newServiceObject();
const input = {
  case: "listEngineUsers",
  value: { $typeName: "holdfast.agent.v1.ListEngineUsers" },
} as const;

/** Durable tasks in memory, ended by the test. */
function createFixture() {
  const objects = new Map<string, TaskObject>();
  const states = new Map<string, TaskState>();
  let isOfOrganization = true;
  const tasks = createMachineTasks(
    { type: "users", scope: "services:read", resultOf: (output) => JSON.stringify({ case: output.case }) },
    {
      fleet: {
        async submit(machineId: string, id: string, { ownerId }: TaskRequest) {
          const spec = { machineId, ownerId } as TaskObject["spec"];
          const status = { finishedAt: null } as TaskObject["status"];
          objects.set(id, { metadata: { createdAt: 1_000 }, spec, status } as TaskObject);
          states.set(id, { status: "pending", progress: undefined, result: undefined });
        },
        task: (id: string) => states.get(id),
      },
      tasks: {
        get: (id: string) => (objects.has(id) ? { object: objects.get(id) as TaskObject, modRevision: 1n } : undefined),
      },
      access: { find: () => (isOfOrganization ? { object: service, modRevision: 1n } : undefined) },
      ids,
      newKey: () => "k",
    },
  );
  return { tasks, objects, states, lose: () => void (isOfOrganization = false) };
}

test("a task of a machine is read by its id until it or its service is deleted", async () => {
  const { tasks, objects, states, lose } = createFixture();
  const call = testCall();
  const ref = ids.open(call, await tasks.submit(service, input, 1_000, call));
  if (ref === undefined) throw new Error("the id does not open");
  expect(ref).toMatchObject({ type: "users", serviceId: service.metadata.id });
  expect(await tasks.source.read(ref, call)).toMatchObject({ status: "pending", createdAt: 1_000, result: undefined });
  expect(await tasks.source.read({ ...ref, serviceId: "other" }, call)).toBeUndefined();

  const result = create(TaskResultSchema, { output: { case: "listEngineUsers", value: {} } });
  states.set("users-k", { status: "completed", progress: undefined, result });
  expect(await tasks.source.read(ref, call)).toMatchObject({
    status: "completed",
    result: '{"case":"listEngineUsers"}',
  });
  const failure = { code: "engine_refused", message: "no" };
  states.set("users-k", { status: "failed", progress: undefined, result: create(TaskResultSchema, { failure }) });
  expect(await tasks.source.read(ref, call)).toMatchObject({ status: "failed", error: failure, result: undefined });

  lose();
  expect(await tasks.source.read(ref, call)).toBeUndefined();
  objects.clear();
  expect(await tasks.source.read(ref, call)).toBeUndefined();
});

import { create } from "@bufbuild/protobuf";
import { RemoveEngineQueueResultSchema, TaskResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, it } from "vitest";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import { newQueue } from "./queue.ts";
import { createQueueRegistry } from "./queue-registry.ts";

const { service } = newServiceObject();
const settings = { databaseName: "defaultdb", visibilityTimeoutSeconds: 30, maxAttempts: 5, dlqEnabled: true };
const queue = newQueue({ serviceId: "service-1", organizationId: "o", name: "jobs", queueId: "q", ...settings }, 0);
const { signal } = new AbortController();

const registryWhere = (answer: Parameters<typeof create<typeof TaskResultSchema>>[1]) =>
  createQueueRegistry({ fleet: { run: async () => create(TaskResultSchema, answer) } });

it.each([
  // From an agent without queues, until its upgrade.
  ["not_supported", "notYet"],
  ["engine_busy", "notYet"],
  ["name_taken", "refused"],
  ["engine_refused", "refused"],
])("a failure %s of the agent is %s", async (code, kind) => {
  const outcome = await registryWhere({ failure: { code, message: "why" } }).put(service, queue, signal);
  expect(outcome).toMatchObject({ kind });
});

it("retries unanswered requests later, and passes on the caller's abort", async () => {
  const unreachable = createQueueRegistry({ fleet: { run: () => Promise.reject(new Error("nobody is there")) } });
  expect(await unreachable.put(service, queue, signal)).toMatchObject({ kind: "notYet" });
  await expect(unreachable.put(service, queue, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
});

it("reports whether a deleted queue still has messages", async () => {
  for (const deleted of [true, false]) {
    const value = create(RemoveEngineQueueResultSchema, { deleted });
    const registry = registryWhere({ output: { case: "removeEngineQueue", value } });
    expect(await registry.remove(service, { database: "defaultdb", id: "q" }, signal)).toEqual({
      kind: "done",
      value: deleted,
    });
  }
});

import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import {
  EngineLogLineSchema,
  ReadLogsResultSchema,
  type TaskResult,
  TaskSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test, vi } from "vitest";
import { createTaskRunner, type TaskRunnerDeps } from "./task-runner.ts";

test("a result that cannot be sent fails its task, and not the stream", async () => {
  const sent: TaskResult[] = [];
  const time = { $typeName: "google.protobuf.Timestamp", seconds: 1n, nanos: 0.5 } as const;
  const lines = [create(EngineLogLineSchema, { message: "a line", time })];
  const runner = createTaskRunner(
    partial<TaskRunnerDeps>({
      journal: {
        terms: new Map(),
        raiseTerm: async () => undefined,
        generation: () => 0n,
        outcome: () => "unknown",
        raiseGeneration: async () => undefined,
      },
      handlers: { readLogs: { run: async () => create(ReadLogsResultSchema, { lines }) } },
      shared: {},
      sendResult: (result) => void sent.push(result),
      now: Date.now,
      log: silentLog,
    }),
  );
  runner.accept(create(TaskSchema, { id: "t-1", ownerId: "s-1", input: { case: "readLogs", value: {} } }));
  await vi.waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).toMatchObject({ taskId: "t-1", failure: { code: "failed" }, output: { case: undefined } });
});

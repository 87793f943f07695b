import { create } from "@bufbuild/protobuf";
import { TaskResultSchema, TaskSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
import { createSensitiveFields } from "./sensitive-fields.ts";

const fields = createSensitiveFields();
const upper = (text: string) => text.toUpperCase();

test("sensitive text is found in lists of messages of a oneof, and the original is unchanged", () => {
  const users = [
    { username: "one", verifier: "v1" },
    { username: "two", verifier: "v2" },
  ];
  const task = create(TaskSchema, { id: "t", input: { case: "convergeInstance", value: { instance: { users } } } });
  const mapped = fields.map(TaskSchema, task, upper);
  expect(mapped.input.value).toMatchObject({
    instance: {
      users: [
        { username: "one", verifier: "V1" },
        { username: "two", verifier: "V2" },
      ],
    },
  });
  expect(task.input.value).toMatchObject({ instance: { users: [{ verifier: "v1" }, { verifier: "v2" }] } });
  expect(mapped.id).toBe("t");
});

test("a message without sensitive fields is returned unchanged", () => {
  const result = create(TaskResultSchema, { taskId: "t" });
  expect(fields.map(TaskResultSchema, result, upper)).toBe(result);
});

import { create } from "@bufbuild/protobuf";
import { ReadLogsResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
import { until } from "@holdfast/testing/wait-until.ts";
import { createSharedQueries, selectLines } from "./owner-logs.ts";

const { signal } = new AbortController();

test("concurrent callers with one key share a result, callers may leave, and a later call queries again", async () => {
  const checks = createSharedQueries<string>(60_000);
  const answer = Promise.withResolvers<string>();
  let queried = 0;
  const query = () => {
    queried += 1;
    return answer.promise;
  };
  const leaving = new AbortController();
  const first = checks.check("service", query, leaving.signal);
  const others = Array.from({ length: 100 }, () => checks.check("service", query, signal));
  leaving.abort(new Error("gone"));
  await expect(first).rejects.toThrow("gone");
  answer.resolve("a line");
  expect(new Set(await Promise.all(others))).toEqual(new Set(["a line"]));
  expect(await checks.check("service", query, signal)).toBe("a line");
  expect(queried).toBe(1);
  await checks.check("another", query, signal);
  expect(queried).toBe(2);
});

test("a failure is not cached, and a result only for a limited time", async () => {
  const checks = createSharedQueries<string>(1);
  await expect(checks.check("service", () => Promise.reject(new Error("away")), signal)).rejects.toThrow("away");
  expect(await checks.check("service", async () => "back", signal)).toBe("back");
  await until(async () => (await checks.check("service", async () => "newer", signal)) === "newer");
});

test.each([
  { newest: true, contains: "", limit: 2, messages: ["d", "Ee"], end: "3" },
  { newest: true, contains: "E", limit: 2, messages: ["e", "Ee"], end: "3" },
  { newest: false, contains: "b", limit: 2, messages: ["b"], end: "2" },
])("lines of an agent without $newest and $contains are selected here", async ({ messages, end, ...request }) => {
  const pages = [["a"], ["b", "e"], ["d", "Ee"]].map((lines, index) =>
    create(ReadLogsResultSchema, {
      lines: lines.map((message) => ({ message })),
      nextCursor: String(index + 1),
      hasMore: index < 2,
    }),
  );
  const pageAt = (cursor: string) => pages[Number(cursor)] ?? create(ReadLogsResultSchema);
  const selected = await selectLines(pageAt("0"), request, async (cursor) => pageAt(cursor));
  expect(selected.lines.map(({ message }) => message)).toEqual(messages);
  expect(selected.nextCursor).toBe(end);
});

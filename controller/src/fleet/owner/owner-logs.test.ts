import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { ReadLogsResultSchema, TaskResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { ListLogsRequestSchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { testCall } from "@holdfast/testing/api/test-call.ts";
import { expect, test } from "vitest";
import { createCursors } from "#kernel/page/cursor.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { MonitoredOwner } from "./monitored-owner.ts";
import { createOwnerLogs, createSharedQueries, selectLines } from "./owner-logs.ts";

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

const cursors = createCursors(createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) }));
const owner: MonitoredOwner = {
  owner: { kind: "managed-service", id: "db" },
  noun: "service",
  name: "db",
  organizationId: "o",
  software: "valkey",
  machines: [{ id: "m", role: "primary", isExpected: true }],
  mainMachineId: "m",
  suspension: undefined,
  startedAt: 0,
  generation: 1,
  term: 1,
};

test("the log of a stopped owner, whose machine does not respond, is refused with the reason", async () => {
  const run = () => Promise.reject(new HoldfastError("MACHINE_UNREACHABLE", "The machine is away."));
  const logs = createOwnerLogs({ fleet: { run }, cursors });
  const page = (suspension: MonitoredOwner["suspension"]) =>
    logs.page({ ...owner, suspension }, create(ListLogsRequestSchema, { id: "db" }), testCall());
  await expect(page("stopped")).rejects.toMatchObject({ key: "WRONG_STATE" });
  await expect(page("stopped")).rejects.toThrow("The service is stopped.");
  await expect(page(undefined)).rejects.toMatchObject({ key: "MACHINE_UNREACHABLE" });
});

test("a separate log that the software, or an older agent, does not have is refused", async () => {
  const requested: string[] = [];
  const page = (available: string, component?: "slow") => {
    const run: Fleet["run"] = async (_machine, { input }) => {
      if (input.case === "readLogs") requested.push(input.value.component);
      const value = create(ReadLogsResultSchema, { nextCursor: "1:5", selected: true, component: available });
      return create(TaskResultSchema, { output: { case: "readLogs", value } });
    };
    const request = create(ListLogsRequestSchema, { id: "db", ...(component && { component }) });
    return createOwnerLogs({ fleet: { run }, cursors }).page(owner, request, testCall());
  };
  expect(await page("")).toMatchObject({ lines: [] });
  expect(await page("slow", "slow")).toMatchObject({ lines: [] });
  await expect(page("", "slow")).rejects.toMatchObject({ key: "NOT_SUPPORTED" });
  await expect(page("", "slow")).rejects.toThrow('The machine has no log "slow" of valkey.');
  expect(requested).toEqual(["", "slow", "slow", "slow"]);
});

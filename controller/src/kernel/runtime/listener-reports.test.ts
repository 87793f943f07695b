import { createServer } from "node:net";
import { silentLog } from "@holdfast/common/log.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createListenerReports } from "./listener-reports.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function open() {
  const announced: (readonly string[])[] = [];
  const announceListeners = async (listeners: readonly string[]) => void announced.push(listeners);
  const reports = createListenerReports({ announceListeners }, silentLog);
  return { announced, reports };
}

test("reports of processes with one identity coexist, and outlive their stream for a while", () => {
  const { announced, reports } = open();
  const first = reports.add("issuer a", ["10.0.0.1:8451"]);
  reports.add("issuer a", ["10.0.0.2:8451", "10.0.0.2", "x".repeat(400)]);
  expect(announced.at(-1)).toEqual(["10.0.0.1:8451", "10.0.0.2:8451"]);
  first();
  vi.advanceTimersByTime(9 * 60_000);
  expect(announced.at(-1)).toContain("10.0.0.1:8451");
  vi.advanceTimersByTime(2 * 60_000);
  expect(announced.at(-1)).toEqual(["10.0.0.2:8451"]);
});

test("a process that returns in time keeps its report, and a report is announced once", () => {
  const { announced, reports } = open();
  const first = reports.add("dns a", ["10.0.0.1:53"]);
  first();
  reports.add("dns a", ["10.0.0.1:53"]);
  vi.advanceTimersByTime(60 * 60_000);
  expect(announced).toEqual([["10.0.0.1:53"]]);
});

test("too many reports evict the oldest", () => {
  const { announced, reports } = open();
  for (let n = 0; n < 300; n += 1) reports.add(`dns ${n}`, [`10.0.${n >> 8}.${n & 255}:53`]);
  expect(announced.at(-1)).toHaveLength(256);
  expect(announced.at(-1)).toContain("10.0.1.43:53");
});

test("this controller's own listeners are announced with the reports", async () => {
  const { announced, reports } = open();
  const server = createServer();
  onTestFinished(() => void server.close());
  const port = await listenAt(server, { host: "127.0.0.1", port: 0 });
  reports.refresh();
  expect(announced).toEqual([[`127.0.0.1:${port}`]]);
});

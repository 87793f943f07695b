import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { expect, onTestFinished, test } from "vitest";
import { createTextLogReader } from "../log-reader.ts";
import { reportStart } from "./start-report.ts";

function logAt(lines: string) {
  const directory = mkdtempSync(join(tmpdir(), "start-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "engine.log");
  writeFileSync(`${path}.1`, lines);
  const logs = createTextLogReader({ component: "engine", path, parse: () => undefined });
  return { logs, print: (line: string) => appendFileSync(`${path}.1`, `${line}\n`) };
}

/** Progress is what follows "progress "; another line ends it. */
const startProgress = () => (line: string) => /^progress (.*)/.exec(line)?.[1];

test("progress is the reason of the starting engine, and only the newest of an earlier log", async () => {
  const reported: (string | undefined)[] = [];
  const status = { setState: (_: string, reason?: string) => void reported.push(reason) };
  const { logs, print } = logAt("progress 1\nprogress 2\n");
  const report = reportStart({ startProgress }, { logs, mark: "", status });
  await waitUntil("the newest progress is reported", () => reported.length > 0);
  print("progress 3");
  await waitUntil("later progress is reported", () => reported.length > 1);
  print("started");
  await waitUntil("its end is reported", () => reported.length > 2);
  expect(reported).toEqual(["2", "3", undefined]);
  await report.close();
  print("progress 4");
  expect(reported).toHaveLength(3);
});

test("an engine whose start shows no progress changes no state", async () => {
  const status = { setState: () => expect.unreachable("no state changes") };
  await reportStart({}, { ...logAt("progress 1\n"), mark: "", status }).close();
});

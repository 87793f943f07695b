import { expect, test } from "vitest";
import { startProgress } from "./start-progress.ts";

const line = (message: string) => `1764318337.160 [42] LOG:  ${message}`;

test("a recovery shows for how long it has replayed the log, until the engine accepts connections", () => {
  const lines: readonly (readonly [message: string, progress: string | undefined])[] = [
    ["starting PostgreSQL 17.6 on x86_64-pc-linux-gnu", undefined],
    ["database system was interrupted; last known up at 2026-11-30 02:07:24 UTC", undefined],
    [
      "database system was not properly shut down; automatic recovery in progress",
      "The engine recovers after a crash.",
    ],
    ["redo starts at 0/1A2B3C8", "The engine recovers after a crash."],
    [
      "redo in progress, elapsed time: 10.00 s, current LSN: 0/5D2B3C8",
      "The engine recovers after a crash: it has replayed its log for 10 s.",
    ],
    ["redo done at 0/9F2B3C8", "The engine recovers after a crash: it has replayed its log for 10 s."],
    ["database system is ready to accept connections", undefined],
  ];
  const progress = startProgress();
  expect(lines.map(([message]) => progress(line(message)))).toEqual(lines.map(([, expected]) => expected));
});

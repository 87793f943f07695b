import { expect, test } from "vitest";
import { startProgress } from "./start-progress.ts";

const note = (code: string, message: string) => `2026-11-30T02:07:24.056024Z 1 [Note] [MY-${code}] [InnoDB] ${message}`;
const start = "2026-11-30T02:07:20.041850Z 0 [System] [MY-015015] [Server] MySQL Server - start.";

// As MySQL 9.7.4 prints them.
const recovery: readonly (readonly [line: string, progress: string | undefined])[] = [
  [start, undefined],
  [
    note("013883", "The latest found checkpoint is at lsn = 57940722 in redo log file ./#innodb_redo/#ib_redo1."),
    undefined,
  ],
  [note("012551", "Database was not shutdown normally!"), undefined],
  [note("012552", "Starting crash recovery."), "The engine recovers after a crash."],
  [note("013086", "Starting to parse redo log at lsn = 57940675"), "The engine recovers after a crash."],
  [note("012550", "Doing recovery: scanned up to log sequence number 63183360"), "The engine recovers after a crash."],
  [
    note("012550", "Doing recovery: scanned up to log sequence number 168040960"),
    "The engine recovers after a crash: it has read 96 MiB of its redo log.",
  ],
  [
    note("012532", "Applying a batch of 6355 redo log records ..."),
    "The engine recovers after a crash: it has read 96 MiB of its redo log.",
  ],
  [note("012533", "10%"), "The engine recovers after a crash: it has applied 10% of the redo log that it has read."],
  [
    note("012535", "Apply batch completed!"),
    "The engine recovers after a crash: it has applied 10% of the redo log that it has read.",
  ],
  ["2026-11-30T02:07:42.792164Z 1 [System] [MY-013577] [InnoDB] InnoDB initialization has ended.", undefined],
];

test("a recovery shows how much of the redo log was read and applied, until InnoDB has started", () => {
  const progress = startProgress();
  expect(recovery.map(([line]) => progress(line))).toEqual(recovery.map(([, expected]) => expected));
});

test("the recovery of an earlier start, which was killed, is not that of the next", () => {
  const progress = startProgress();
  for (const [line] of recovery.slice(0, 7)) progress(line);
  expect(progress(start)).toBeUndefined();
});

test("an orderly start shows no recovery", () => {
  const progress = startProgress();
  const lines = [
    start,
    note("013883", "The latest found checkpoint is at lsn = 57940722 in redo log file ./#innodb_redo/#ib_redo1."),
    "2026-11-30T02:07:44.440020Z 0 [System] [MY-010931] [Server] /usr/sbin/mysqld: ready for connections.",
  ];
  expect(lines.map(progress)).toEqual([undefined, undefined, undefined]);
});

import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { startBackupFixture } from "./support/backup-fixture.ts";
import { percentile, print } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// Age of the recovery point of a PostgreSQL: without writes, and under pgbench (as root).
const { values } = parseArgs({
  options: {
    scale: { type: "string", default: "20" },
    clients: { type: "string", default: "4" },
    seconds: { type: "string", default: "120" },
  },
});

/** The controllers' default. */
const idleMs = 55_000;
const everyMs = 100;

printHost();
const fixture = await startBackupFixture();
try {
  await fixture.pgbench("-i", "-q", "-s", values.scale);
  await fixture.follow({ archiveId: "a-1", key: { id: "k-1", secret: randomBytes(32).toString("base64") }, idleMs });
  await waitUntil("the log is followed", () => newest() !== undefined, { withinMs: 120_000 });
  const measured = ["-n", "-c", values.clients, "-j", "2", "-T", values.seconds];
  report("under pgbench", await ages(() => fixture.pgbench(...measured)), "<= 5 s");
  // By then the log of the load is archived.
  await sleep(10_000);
  report("while nobody writes", await ages(() => sleep(Number(values.seconds) * 1_000)), "<= 60 s");
} finally {
  await fixture.remove();
}

function newest(): number | undefined {
  const time = fixture.archive()?.durableTime;
  return time && timestampMs(time);
}

/** Ages of the newest durable moment, in milliseconds, sampled during the work. */
async function ages(work: () => Promise<unknown>): Promise<number[]> {
  const agesMs: number[] = [];
  let isFinished = false;
  const done = work().finally(() => {
    isFinished = true;
  });
  while (!isFinished) {
    agesMs.push(Date.now() - (newest() ?? 0));
    await sleep(everyMs);
  }
  await done;
  return agesMs;
}

function report(when: string, seen: readonly number[], bar: string): void {
  const [half, most, all] = [0.5, 0.99, 1].map((share) => `${(percentile(seen, share) / 1_000).toFixed(1)} s`);
  print(`age of the newest restorable moment ${when}: p50; p99; all`, `${half}; ${most}; ${all}`, bar);
}

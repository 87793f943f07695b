import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { waitUntil } from "@holdfast/test/support/wait-until.ts";
import { startBackupGround } from "./support/backup-ground.ts";
import { percentile, print } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// How old the newest moment is that a PostgreSQL can be restored to: while nobody writes, and under pgbench (as root).
const { values } = parseArgs({
  options: {
    scale: { type: "string", default: "20" },
    clients: { type: "string", default: "4" },
    seconds: { type: "string", default: "120" },
  },
});

/** As controllers ask for it by default. */
const idleMs = 55_000;
const everyMs = 100;

printHost();
const ground = await startBackupGround();
try {
  await ground.pgbench("-i", "-q", "-s", values.scale);
  await ground.follow({ archiveId: "a-1", key: { id: "k-1", secret: randomBytes(32).toString("base64") }, idleMs });
  await waitUntil("the log is followed", () => newest() !== undefined, { withinMs: 120_000 });
  const measured = ["-n", "-c", values.clients, "-j", "2", "-T", values.seconds];
  told("under pgbench", await ages(() => ground.pgbench(...measured)), "<= 5 s");
  // The log of the load is behind it by then.
  await sleep(10_000);
  told("while nobody writes", await ages(() => sleep(Number(values.seconds) * 1_000)), "<= 60 s");
} finally {
  await ground.remove();
}

function newest(): number | undefined {
  const time = ground.archive()?.durableTime;
  return time && timestampMs(time);
}

/** Milliseconds from the newest moment that is durable to now, all the time that the work takes. */
async function ages(work: () => Promise<unknown>): Promise<number[]> {
  const seen: number[] = [];
  let isOver = false;
  const done = work().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    seen.push(Date.now() - (newest() ?? 0));
    await sleep(everyMs);
  }
  await done;
  return seen;
}

function told(when: string, seen: readonly number[], bar: string): void {
  const [half, most, all] = [0.5, 0.99, 1].map((share) => `${(percentile(seen, share) / 1_000).toFixed(1)} s`);
  print(`age of the newest restorable moment ${when}: p50; p99; all`, `${half}; ${most}; ${all}`, bar);
}

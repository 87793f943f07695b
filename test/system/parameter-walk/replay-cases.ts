import { afterAll, beforeAll, expect, it } from "vitest";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createFailures, failing } from "../replication/failures.ts";
import { type End, extremesOf } from "./extremes.ts";
import { createPostgresqlWalk, longMs, type PostgresqlWalk, startWalkPlatform } from "./postgresql-walk.ts";
import { printValues } from "./walked-service.ts";

/** Parameters whose values in the log replay depends on, in two halves. */
const ofReplay = {
  first: ["max_connections", "max_worker_processes", "max_prepared_transactions"],
  second: ["max_locks_per_transaction", "wal_level", "track_commit_timestamp"],
};

/**
 * A failover under each parameter of one half, and a restore across all of them. The second half adds a failover under
 * all parameters that a running engine accepts.
 */
export function replayCases(end: End, half: "first" | "second"): void {
  let platform: Platform;
  let walk: PostgresqlWalk;

  beforeAll(async () => {
    platform = await startWalkPlatform();
    walk = await createPostgresqlWalk(platform, "17", { node_count: 2, replication_mode: "sync" });
  }, longMs);
  afterAll(async () => {
    await walk?.close();
    await platform?.remove();
  }, longMs);

  async function failsOver(): Promise<void> {
    const { services, running } = walk;
    const failures = createFailures(failing({ platform, services }, running), () => undefined, []);
    await walk.close();
    await failures.untilReplicaCounts();
    const { primary, replica } = await failures.roles();
    const repair = failures.pauseMachine(primary);
    try {
      const isReplaced = async () => (await failures.roles()).primary === replica;
      await waitUntil("the replica is the primary", isReplaced, {
        withinMs: 60_000,
        everyMs: 50,
        describe: () => services.describe(walk.id),
      });
    } finally {
      repair();
    }
    await services.settled(walk.id, "Running");
  }

  it(
    "is failed over and restored",
    async () => {
      const rows: { step: number; under: string }[] = [];
      const write = async (under: string) => {
        const row = { step: rows.length, under };
        await walk.sql("INSERT INTO walked VALUES ($1, $2) ON CONFLICT DO NOTHING", [row.step, row.under]);
        rows.push(row);
      };
      await walk.sql("CREATE TABLE IF NOT EXISTS walked (step int PRIMARY KEY, under text)");
      for (const extreme of extremesOf("postgresql", "17", end, ({ name }) => ofReplay[half].includes(name))) {
        const value = await walk.set(extreme);
        if (value === undefined) continue;
        const under = printValues({ [extreme.name]: value });
        await walk.services.verb(walk.id, "restart");
        await walk.applied({ [extreme.name]: value });
        await walk.has({ [extreme.name]: value });
        await write(under);
        await failsOver();
        await write(`${under}, failed over`);
        await walk.runs(under);
        await walk.reset([extreme.name]);
      }
      if (half === "second") {
        const live: Record<string, string> = {};
        for (const extreme of extremesOf("postgresql", "17", end, ({ needsRestart }) => !needsRestart)) {
          const value = await walk.set(extreme);
          if (value !== undefined) live[extreme.name] = value;
        }
        await walk.applied(live);
        await write("all");
        await failsOver();
        await write("all, failed over");
        await walk.runs(printValues(live));
      }
      const copy = await walk.restored("walked-copy");
      expect(await walk.readFrom(copy, "SELECT step, under FROM walked ORDER BY step")).toEqual(rows);
    },
    longMs,
  );
}

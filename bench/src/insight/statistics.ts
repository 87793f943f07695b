import { create } from "@bufbuild/protobuf";
import { statisticMessages } from "@holdfast/controller/insight/query-stats/statistics-tasks.ts";
import { EngineQueryStatisticSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { ms, percentile, print } from "../support/figures.ts";
import { withPostgresql } from "./measured-engine.ts";

/** Below the engine's limit, so that it evicts none. */
const statements = 4_900;
const columns = 100;
const limit = 50;

/**
 * Query statistics from the engine's views to the rendered response, without the stream between agent and controller.
 */
export function measureStatistics(rounds: number): Promise<void> {
  return withPostgresql(async ({ driver, instance, signal }, connect) => {
    const client = await connect();
    const names = Array.from({ length: columns }, (_, index) => `c${index}`);
    await client.query(`CREATE TABLE wide (${names.map((name) => `${name} int`).join(", ")})`);
    for (let index = 0; index < statements; index += 1) {
      const [one, other] = [names[index % columns], names[Math.floor(index / columns)]];
      await client.query(`SELECT ${one} FROM wide WHERE ${other} > 7`);
    }
    await client.end();
    const took: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const startedAt = performance.now();
      const reported = await driver.queryStats?.read(instance, { limit, order: "total_time" }, signal);
      const queries = (reported?.queries ?? []).map(({ calls, rows, cacheHitRatio, ...query }) =>
        create(EngineQueryStatisticSchema, {
          ...query,
          calls: BigInt(calls),
          rows: BigInt(rows),
          ...(cacheHitRatio !== undefined && { cacheHitRatio }),
        }),
      );
      const rendered = await statisticMessages(queries, "postgresql");
      took.push(performance.now() - startedAt);
      const known = reported?.totalCount ?? 0;
      if (known < statements || rendered.length !== limit) throw new Error(`${rendered.length} of ${known} are told`);
    }
    const figures = `${ms(percentile(took, 0.5))} / ${ms(percentile(took, 0.95))}`;
    print(`statistics, ${limit} of ${statements}, p50 / p95`, figures, "<= 50 ms");
  });
}

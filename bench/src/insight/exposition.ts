import { appliesToEngine, metricCatalog } from "@holdfast/common/metric-catalog.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { metricExposition } from "@holdfast/controller/insight/metric/metric-exposition.ts";
import { createSamples } from "@holdfast/controller/insight/metric/samples/samples.ts";
import { createHistory } from "@holdfast/controller/kernel/history/history.ts";
import { monitoredService } from "@holdfast/controller/services/monitored-services.ts";
import { startTestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { parseExposition } from "@holdfast/testing/api/parse-exposition.ts";
import { ms, percentile, print } from "../support/figures.ts";
import { watchedServices } from "./watched-services.ts";

/** `GET /metrics` of one organization, from the history to the text. */
export async function measureExposition(count: number, rounds: number): Promise<void> {
  const postgresql = await startTestPostgresql();
  const history = createHistory({ url: postgresql.url, log: silentLog, now: Date.now });
  try {
    await history.ready;
    const samples = createSamples(history.sql);
    const services = watchedServices(count);
    const exposed = metricCatalog.filter((metric) => metric.source !== null && appliesToEngine(metric, "postgresql"));
    const values = new Map(exposed.map(({ number }) => [number, number / 3]));
    const machineIds = services.flatMap(({ spec }) => spec.nodes.map(({ id }) => id));
    const took: number[] = [];
    const cpu: number[] = [];
    for (let round = 0; round < Math.min(rounds, 40); round += 1) {
      const timeMs = Date.now();
      await samples.insert(machineIds.map((machineId) => ({ machineId, timeMs, values })));
      const [startedAt, used] = [performance.now(), process.cpuUsage()];
      const text = await metricExposition(
        services.map(monitoredService),
        await samples.newest(machineIds, timeMs - 60_000),
        [],
      );
      took.push(performance.now() - startedAt);
      const { user, system } = process.cpuUsage(used);
      cpu.push((user + system) / 1_000);
      const lines = parseExposition(text).length;
      if (lines !== count * exposed.length) throw new Error(`${lines} samples of ${count * exposed.length}`);
    }
    const figures = `${ms(percentile(took, 0.5))} / ${ms(percentile(took, 0.95))}`;
    print(`/metrics of ${count} services with ${exposed.length} metrics, p50 / p95`, figures, "<= 300 ms");
    print("  CPU of the controller, p50", ms(percentile(cpu, 0.5)));
  } finally {
    await history.close();
    await postgresql.stop();
  }
}

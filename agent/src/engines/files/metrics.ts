import { countSessions, sendCommand } from "../front/front-commands.ts";
import type { MetricsFacet } from "../insight-facets.ts";
import { createBucketCount } from "./bucket-count.ts";
import { frontOf } from "./front.ts";

/** Metrics of the front's counters, and of the bucket's last count. The epoch is the start of the front. */
export function createMetrics(): MetricsFacet {
  const bucket = createBucketCount(Date.now);
  return {
    async read(instance, signal) {
      const front = frontOf(instance);
      const [connections, statistics, info] = await Promise.all([
        countSessions(front, "listener", signal),
        sendCommand(front, "show stat listener 1 -1", signal),
        sendCommand(front, "show info", signal),
      ]);
      const figures = parseStatistics(statistics);
      const valueOf = (name: string) => Number(figures.get(name) ?? 0);
      const counted = bucket.last(instance);
      const reason = "The bucket is being counted.";
      return {
        gauges: {
          connections,
          ...(counted && { files_objects: counted.objects, files_bytes: counted.bytes }),
        },
        counters: {
          files_requests_per_sec: valueOf("req_tot"),
          files_errors_per_sec: valueOf("hrsp_5xx"),
          files_bytes_in_per_sec: valueOf("bin"),
          files_bytes_out_per_sec: valueOf("bout"),
        },
        ratios: {},
        epoch: /^Start_time_sec: (\d+)$/m.exec(info)?.[1] ?? "",
        absent: counted === undefined ? { files_objects: reason, files_bytes: reason } : {},
      };
    },
  };
}

/** The first row of HAProxy's statistics (CSV), by column. */
export function parseStatistics(text: string): Map<string, string> {
  const [head = "", row = ""] = text.trim().split("\n");
  const values = row.split(",");
  return new Map(
    head
      .replace(/^# /, "")
      .split(",")
      .map((name, index) => [name, values[index] ?? ""]),
  );
}

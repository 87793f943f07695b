import fc from "fast-check";
import { expect, test } from "vitest";
import { readWriteRequest } from "@holdfast/testing/servers/write-request-schema.ts";
import type { MetricItem } from "../export-item.ts";
import { writeRequest } from "./write-request.ts";

const origin = fc.record({
  serviceId: fc.string(),
  serviceName: fc.string({ unit: "grapheme" }),
  dbType: fc.constantFrom("postgresql", "valkey"),
  nodeId: fc.string({ maxLength: 400 }),
});
const item = (origins: readonly MetricItem["origin"][]): fc.Arbitrary<MetricItem> =>
  fc.record({
    origin: fc.constantFrom(...origins),
    metric: fc.constantFrom("cpu", "memory", "disk"),
    value: fc.double(),
    timeMs: fc.oneof(
      fc.maxSafeNat(),
      fc.constantFrom(0, 127, 128, 2 ** 31 - 1, 2 ** 31, 2 ** 35, Number.MAX_SAFE_INTEGER),
    ),
  });
const batches = fc
  .array(origin, { minLength: 1, maxLength: 3 })
  .chain((origins) => fc.array(item(origins), { maxLength: 60 }));

test("a reader of the schema decodes every written request, each series in order", () => {
  fc.assert(
    fc.property(batches, (items) => {
      const keyOf = ({ metric, origin: { nodeId, serviceId, serviceName, dbType } }: MetricItem) =>
        JSON.stringify([`platform_${metric}`, dbType, nodeId, serviceId, serviceName]);
      const written = new Map<string, [number, number][]>();
      // Two origins may have equal labels: readers see one series.
      for (const each of items) written.set(keyOf(each), []);
      for (const each of items) written.get(keyOf(each))?.push([each.value, each.timeMs]);
      const read = new Map<string, [number, number][]>([...written.keys()].map((key) => [key, []]));
      for (const { labels, samples } of readWriteRequest(writeRequest(items))) {
        expect(labels.map(({ name }) => name)).toEqual([
          "__name__",
          "db_type",
          "node_id",
          "service_id",
          "service_name",
        ]);
        const key = JSON.stringify(labels.map(({ value }) => value));
        for (const { value, timestamp } of samples) read.get(key)?.push([value, Number(timestamp)]);
      }
      const sorted = (series: Map<string, [number, number][]>) =>
        new Map([...series].map(([key, samples]) => [key, samples.map(String).toSorted()]));
      expect(sorted(read)).toEqual(sorted(written));
    }),
    { numRuns: 300 },
  );
});

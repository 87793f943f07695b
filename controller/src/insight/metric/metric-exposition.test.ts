import { metricOf } from "@holdfast/common/metric-catalog.ts";
import { expect, test } from "vitest";
import { parseExposition } from "@holdfast/testing/api/parse-exposition.ts";
import { nodeOf, runningService } from "@holdfast/testing/controller/service-object.ts";
import type { MonitoredOwner } from "#fleet/owner/monitored-owner.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { monitoredService } from "#services/monitored-services.ts";
import { metricExposition } from "./metric-exposition.ts";

const metricNumber = (name: string) => metricOf(name)?.number ?? 0;

test("the text has every reported metric once for each node, and no other", async () => {
  const names = ["orders", 'a "quoted" \\ name'];
  const services = names.map((name, index) =>
    runningService({ id: `s-${index}`, name }, { nodes: [nodeOf(`n-${index}`)] }),
  );
  const silent = runningService({ id: "s-9", name: "silent" }, { nodes: [nodeOf("n-9")] });
  const samples = [
    {
      machineId: "n-0",
      values: new Map([
        [metricNumber("cpu"), 12.5],
        [metricNumber("pg_connections"), 0],
      ]),
    },
    {
      machineId: "n-1",
      values: new Map([
        [metricNumber("cpu"), 1e-7],
        [metricNumber("valkey_used_memory"), 5],
      ]),
    },
  ];
  const read = parseExposition(await metricExposition([...services, silent].map(monitoredService), samples, []));
  expect(read.map(({ name, labels, value }) => [name, labels["service_name"], labels["node_id"], value])).toEqual([
    ["holdfast_cpu", "orders", "n-0", 12.5],
    ["holdfast_cpu", 'a "quoted" \\ name', "n-1", 1e-7],
    ["holdfast_pg_connections", "orders", "n-0", 0],
  ]);
});

test("a thousand services are exported in one call", async () => {
  const services = Array.from({ length: 1_000 }, (_, index) =>
    runningService({ id: `s-${index}` }, { nodes: [nodeOf(`n-${index}`)] }),
  );
  const values = new Map(["cpu", "memory", "disk", "connections", "pg_locks"].map((name) => [metricNumber(name), 1]));
  const samples = services.map((_, index) => ({ machineId: `n-${index}`, values }));
  expect(parseExposition(await metricExposition(services.map(monitoredService), samples, []))).toHaveLength(5_000);
});

test("figures of systems are exported with labels, for the services that have some", async () => {
  const services = [runningService({ id: "s-0", name: "orders" }), runningService({ id: "s-1", name: "silent" })];
  const figure = {
    name: "backups",
    help: "Backups of the service",
    labels: ["state"],
    read: (id: string) =>
      id === "s-0" ? ["completed", "failed"].map((state, index) => ({ labels: { state }, value: index + 1 })) : [],
  };
  const nothing = { name: "queues", help: "Queues of the service", labels: [], read: () => [] };
  const read = parseExposition(await metricExposition(services.map(monitoredService), [], [figure, nothing]));
  const labels = { service_id: "s-0", service_name: "orders", db_type: "postgresql" };
  expect(read).toEqual([
    { name: "holdfast_backups", labels: { ...labels, state: "completed" }, value: 1 },
    { name: "holdfast_backups", labels: { ...labels, state: "failed" }, value: 2 },
  ]);
});

test("an owner that is no service has the label of its kind, and no metrics of engines", async () => {
  const board = partial<MonitoredOwner>({
    owner: { kind: "board", id: "b" },
    name: "chess",
    software: "board",
    machines: [{ id: "m", role: "primary" }],
  });
  const values = new Map([
    [metricNumber("cpu"), 3],
    [metricNumber("pg_connections"), 9],
  ]);
  const read = parseExposition(await metricExposition([board], [{ machineId: "m", values }], []));
  const labels = { service_id: "b", service_name: "chess", db_type: "board", node_id: "m", role: "primary" };
  expect(read).toEqual([{ name: "holdfast_cpu", labels, value: 3 }]);
});

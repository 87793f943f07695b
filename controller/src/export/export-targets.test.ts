import { expect, test } from "vitest";
import { create } from "@bufbuild/protobuf";
import { TaskResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { MonitoredOwner } from "#fleet/owner/monitored-owner.ts";
import { monitoredService } from "#services/monitored-services.ts";
import { nodeOf, runningService } from "@holdfast/testing/controller/service-object.ts";
import { partial } from "@holdfast/testing/partial.ts";
import type { TaskRequest } from "#fleet/task/task.ts";
import { createExportTargets } from "./export-targets.ts";
import { createLogSource, positionFrom } from "./log-source.ts";
import type { MetricsExportObject } from "./metrics-export.ts";

const board: MonitoredOwner = {
  owner: { kind: "board", id: "b" },
  noun: "board",
  name: "chess",
  organizationId: "o",
  software: "board",
  machines: [{ id: "m-board", role: "primary", isExpected: true }],
  mainMachineId: "m-board",
  suspension: undefined,
  startedAt: 0,
  generation: 7,
  term: 3,
};
const service = monitoredService(
  runningService({ id: "s", name: "orders", organizationId: "o" }, { nodes: [nodeOf("n")] }, { primaryNodeId: "n" }),
);
const all = [service, board];
const owners = {
  get: (id: string) => all.find(({ owner }) => owner.id === id),
  ofOrganization: (organizationId: string) => all.filter((each) => each.organizationId === organizationId),
};

const exportOf = (serviceId: string | null, organizationId = "o") =>
  partial<MetricsExportObject>({ metadata: { organizationId }, spec: { serviceId, destinationType: "otlp" } });

function machinesOf(integration: MetricsExportObject, own: readonly string[] = []) {
  const exports = {
    by: (_: unknown, scope: string) =>
      own.some((id) => scope === `o ${id}/otlp`) ? [{ object: integration, modRevision: 1n }] : [],
  };
  const { machines, overridden } = createExportTargets({ owners, exports })(integration);
  return { machines: machines.map(({ machineId }) => machineId), overridden: overridden.map(({ owner }) => owner.id) };
}

test("a global integration exports owners of any kind, and an owner's own one replaces it", () => {
  expect(machinesOf(exportOf(null))).toEqual({ machines: ["n", "m-board"], overridden: [] });
  expect(machinesOf(exportOf(null), ["b"])).toEqual({ machines: ["n"], overridden: ["b"] });
  expect(machinesOf(exportOf("b"))).toEqual({ machines: ["m-board"], overridden: [] });
  expect(machinesOf(exportOf("b", "another"))).toEqual({ machines: [], overridden: [] });
});

test("items of an owner have its labels, and its log is read by its generation and term", async () => {
  const exports = { by: () => [] };
  const [target] = createExportTargets({ owners, exports })(exportOf("b")).machines;
  if (target === undefined) throw new Error("the board has no machine");
  expect(target.origin).toEqual({ serviceId: "b", serviceName: "chess", dbType: "board", nodeId: "m-board" });
  let sent: TaskRequest | undefined;
  const source = createLogSource({
    async run(_, request) {
      sent = request;
      const line = { component: "board", level: "info", message: "e4" };
      return create(TaskResultSchema, { output: { case: "readLogs", value: { lines: [line], nextCursor: "1:3" } } });
    },
  });
  const batch = await source.next(target, positionFrom(0), 10, new AbortController().signal);
  expect(sent).toMatchObject({ ownerId: "b", generation: 7, term: 3 });
  expect(batch?.items).toMatchObject([{ origin: target.origin, message: "e4", role: "primary" }]);
});

import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { describe, expect, test } from "vitest";
import { node, runningService } from "@holdfast/testing/controller/service-object.ts";
import { defaultCatalog, withVirtualMachines } from "#catalog/catalog.ts";
import { beginResizing, hasSize, requireResizable, requireSize } from "./size-request.ts";

const gib = 1024 ** 3;
const catalog = withVirtualMachines(defaultCatalog, ["tier-2"]);

const cases = [
  ["another plan", {}, { planName: "tier-2" }, 0, undefined],
  ["a smaller plan", { planName: "tier-4" }, { planName: "tier-1" }, 0, undefined],
  ["more storage", {}, { storageSizeGb: 2 }, 0, undefined],
  ["less storage", { storageSizeGb: 2 }, { storageSizeGb: 1 }, 0, "NOT_POSSIBLE"],
  ["an unknown plan", {}, { planName: "tier-3" }, 0, "INVALID_REQUEST"],
  ["another kind of machine", {}, { planName: "tier-2-vm" }, 0, "NOT_POSSIBLE"],
  [
    "less memory than a parameter needs",
    { planName: "tier-4", parameters: { shared_buffers: "4GB" } },
    { planName: "tier-1" },
    0,
    "NOT_POSSIBLE",
  ],
  [
    "more memory than before",
    { planName: "tier-1", parameters: { shared_buffers: "4GB" } },
    { planName: "tier-2" },
    0,
    undefined,
  ],
  ["less memory than data", { databaseType: "valkey", planName: "tier-2" }, { planName: "tier-1" }, 2, "NOT_POSSIBLE"],
  ["as much memory as data", { databaseType: "valkey", planName: "tier-2" }, { planName: "tier-1" }, 1, undefined],
] as const;

test.each(cases)("%s: %j to %j with %i GiB of data in memory is %s", (_, spec, requested, dataGb, key) => {
  const service = runningService({}, spec);
  const observed = [create(InstanceObservationSchema, { memoryDataBytes: BigInt(dataGb * gib) })];
  const ask = () => requireSize(service, requested, { catalog, observed });
  if (key === undefined) expect(ask()).toMatchObject(requested);
  else expect(ask).toThrow(expect.objectContaining({ key }));
});

describe("less memory than the primary's running parameters need", () => {
  const smaller = { planName: "tier-1" };
  const running = { max_connections: "500", max_locks_per_transaction: "4000" };
  const replica = { ...node, id: "node-2", role: "replica" } as const;

  function ask(effectiveParameters: Record<string, string>, nodes: (typeof node | typeof replica)[] = [node]) {
    const service = runningService({}, { planName: "tier-4", nodes });
    const observed = nodes.map(({ role }) =>
      create(InstanceObservationSchema, role === "primary" ? { effectiveParameters } : {}),
    );
    return () => requireSize(service, smaller, { catalog, observed });
  }

  test("is refused for replicas, which start with them", () => {
    expect(ask(running, [replica, node])).toThrow(
      expect.objectContaining({
        key: "NOT_POSSIBLE",
        detail: expect.stringMatching(/^tier-1 .*replicas.* max_connections = 500, max_locks_per_transaction = 4000/),
      }),
    );
    expect(ask(running)()).toMatchObject(smaller);
  });

  test("is refused for replay of the log, which starts with them", () => {
    const locks = { ...running, max_locks_per_transaction: "20000" };
    expect(ask(locks)).toThrow(
      expect.objectContaining({ key: "NOT_POSSIBLE", detail: expect.stringContaining("Replay of its log") }),
    );
  });

  test("is accepted with less, without an observation, and with values of the larger plan", () => {
    const ofPlan = { max_connections: "400", max_worker_processes: "12", max_locks_per_transaction: "64" };
    for (const nodes of [[node], [node, replica]]) {
      expect(ask({}, nodes)()).toMatchObject(smaller);
      expect(ask(ofPlan, nodes)()).toMatchObject(smaller);
    }
  });
});

test.each([
  ["Running", "on", undefined],
  ["Stopped", "off", undefined],
  ["Error", "on", undefined],
  ["Stopped", "on", "WRONG_STATE"],
  ["Provisioning", "on", "WRONG_STATE"],
  ["Upgrading", "on", "WRONG_STATE"],
] as const)("a service that is %s with power %s: %s", (state, power, key) => {
  const ask = () => requireResizable(runningService({}, { power }, { state }), undefined);
  if (key === undefined) ask();
  else expect(ask).toThrow(expect.objectContaining({ key }));
});

test("only another plan needs a restart, and both sizes are one operation", () => {
  const service = runningService();
  const asOf = { operationId: "o", now: 1 };
  const larger = beginResizing(service, { planName: "tier-1", storageSizeGb: 2 }, catalog, asOf);
  expect(larger.operation.spec).toMatchObject({ type: "expand", work: { to: { storageSizeGb: 2 } } });
  expect(larger.after.spec.restartCount).toBe(service.spec.restartCount);
  const both = beginResizing(service, { planName: "tier-2", storageSizeGb: 2 }, catalog, asOf);
  expect(both.operation.spec).toMatchObject({ type: "resize", work: { to: { planName: "tier-2", storageSizeGb: 2 } } });
  expect(both.after.spec.restartCount).toBe(service.spec.restartCount + 1);
  expect(both.after.spec.resizing?.toMachine).toMatchObject({ memoryBytes: 4 * gib, diskBytes: 2 * gib });
  expect(hasSize(both.after, { planName: "tier-2" })).toBe(true);
  expect(hasSize(both.after, { planName: "tier-2", storageSizeGb: 1 })).toBe(false);
});

import { create } from "@bufbuild/protobuf";
import { RestoreObservationSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { readyHost } from "@holdfast/testing/platform/ready-host.ts";
import { expect, test } from "vitest";
import { defaultCatalog } from "#catalog/catalog.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { type ReplayMemory, type ReplayMemoryDeps, replayMemoryOf } from "./replay-memory.ts";

const gib = 1024 ** 3;
const lacking = { state: "failed", errorCode: "plan_too_small", requiredMemoryBytes: BigInt(5 * gib) };

interface Situation {
  readonly memoryGib?: number;
  /** Memory that the provider reports. */
  readonly sizedGib?: number;
  readonly sizeProblem?: string;
  readonly hostGib?: number;
}

function memoryFor(report: Partial<typeof lacking>, situation: Situation = {}): ReplayMemory | undefined {
  const { memoryGib = 2, sizedGib = memoryGib, sizeProblem = "", hostGib = 64 } = situation;
  const created = runningMachine("m-1", { memoryBytes: memoryGib * gib, hostId: "h-1" });
  const { vcpu, rootBytes, diskBytes } = created.spec;
  const size = { vcpu, rootBytes, diskBytes, memoryBytes: sizedGib * gib };
  const object: MachineObject = { ...created, status: { ...created.status, size, sizeProblem } };
  const host = readyHost("h-1", { memoryOvercommit: 1 }, { memoryTotalBytes: hostGib * gib });
  const deps = partial<ReplayMemoryDeps>({
    machines: { values: () => [{ object, modRevision: 1n }].values() },
    hosts: { get: () => ({ object: host, modRevision: 1n }) },
    catalog: defaultCatalog,
  });
  return replayMemoryOf(create(RestoreObservationSchema, { ...lacking, ...report }), object, deps);
}

test("a machine whose restore lacks memory gets that of the smallest plan that suffices", () => {
  expect(memoryFor({})).toEqual({ bytes: 8 * gib, refused: undefined });
  expect(memoryFor({ requiredMemoryBytes: BigInt(16 * gib) })).toEqual({ bytes: 16 * gib, refused: undefined });
  // It has that memory already, and its agent has yet to use it.
  expect(memoryFor({}, { memoryGib: 8 })).toEqual({ bytes: 8 * gib, refused: undefined });
});

test.each([
  ["finishes", { state: "finished", errorCode: "" }],
  ["is tried again", { state: "fetching", errorCode: "" }],
  ["fails for another reason", { errorCode: "damaged" }],
  ["has an older agent", { requiredMemoryBytes: 0n }],
])("a machine whose restore %s needs no memory", (_, report) => {
  expect(memoryFor(report)).toBeUndefined();
});

test.each([
  [
    "no plan is as large",
    { requiredMemoryBytes: BigInt(40 * gib) },
    {},
    /^The restore needs 40 GiB of memory, more than any plan has/,
  ],
  ["its host is full", {}, { hostGib: 4 }, /^The machine's host lacks capacity for 8 GiB of memory: .*are reserved/],
  ["its host fails to resize it", {}, { memoryGib: 8, sizedGib: 2, sizeProblem: "The host refused." }, /host refused/],
])("the memory is refused with a reason when %s", (_, report, situation, refused) => {
  expect(memoryFor(report, situation)?.refused).toMatch(refused);
});

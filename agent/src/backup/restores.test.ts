import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type InstanceSpec, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { afterAll, expect, test } from "vitest";
import type { Instance } from "../engines/engine-driver.ts";
import type { Report } from "./job.ts";
import { createRestores } from "./restores.ts";

const data = mkdtempSync(join(tmpdir(), "holdfast-restores-"));
afterAll(() => rmSync(data, { recursive: true, force: true }));

const gib = 1024 ** 3;
const lacking: Report = {
  state: "failed",
  errorCode: "plan_too_small",
  error: "Replay needs more memory.",
  requiredMemoryBytes: 10 * gib,
};

/** Restores whose jobs end with these reports in turn, and the number of jobs that were started. */
function restoresOf(...reports: readonly Report[]) {
  let starts = 0;
  const seen: (string | undefined)[] = [];
  const component = {
    isEmpty: true,
    start: async () => void (starts += 1),
    stop: async () => undefined,
    send: () => undefined,
    outcome: async () => reports[starts - 1],
    // A component sends its last report before it ends.
    ended: async () => {
      restores.recordReport(reports[starts - 1] ?? { state: "fetching" });
      seen.push(restores.observation()?.errorCode);
    },
    started: async () => undefined,
    follow: async () => undefined,
  };
  const restores = createRestores({ component, now: () => 1_000, onChange: () => undefined });
  return {
    starts: () => starts,
    seen,
    observation: () => restores.observation(),
    ensure(memory: Partial<Pick<InstanceSpec, "memoryBytes" | "recoveryMemoryBytes">>) {
      const source = { restoreId: "r-1", serviceId: "s-1", backup: { backupId: "b-1", attempt: 1 } };
      const spec = create(InstanceSpecSchema, { memoryBytes: BigInt(2 * gib), source, ...memory });
      return restores.ensure(partial<Instance>({ spec, paths: { data } }), new AbortController().signal);
    },
  };
}

test("a restore that lacked memory reports how much it needs, and is not tried again on the same machine", async () => {
  const restores = restoresOf(lacking);
  await expect(restores.ensure({})).rejects.toThrow("Replay needs more memory.");
  expect(restores.observation()).toMatchObject({
    errorCode: "plan_too_small",
    requiredMemoryBytes: BigInt(10 * gib),
  });
  await expect(restores.ensure({})).rejects.toThrow("Replay needs more memory.");
  expect(restores.starts()).toBe(1);
});

test.each([
  ["for the time of its recovery", { recoveryMemoryBytes: BigInt(16 * gib) }],
  ["by a larger plan", { memoryBytes: BigInt(16 * gib) }],
])("it is tried again when its machine has more memory %s", async (_, memory) => {
  const restores = restoresOf(lacking, { state: "finished" });
  await expect(restores.ensure({})).rejects.toThrow();
  await restores.ensure(memory);
  expect(restores.starts()).toBe(2);
  expect(restores.observation()).toMatchObject({ state: "finished", errorCode: "", requiredMemoryBytes: 0n });
});

test("a failure that a retry may avoid is never reported as final", async () => {
  const restores = restoresOf({ state: "failed", errorCode: "failed", error: "mysqld died of SIGKILL" });
  await expect(restores.ensure({})).rejects.toThrow("mysqld died of SIGKILL");
  expect([...restores.seen, restores.observation()?.errorCode]).toEqual(["retrying", "retrying"]);
});

import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { expect, test } from "vitest";
import { defaultCatalog } from "#catalog/catalog.ts";
import { type ArchiveObject, newArchive } from "../archive/archive.ts";
import { dueBackup } from "../archive/archive-plan.ts";
import { replayPlanOf, smallerPlanWarnings, withSettings } from "./lowered-settings.ts";

const gib = 1024 ** 3;
const service = runningService({}, { parameters: {} });
const small = { vcpu: 1, memoryBytes: 2 * gib, storageBytes: gib };
const large = { max_connections: "8000", max_locks_per_transaction: "1000", max_prepared_transactions: "5000" };
const little = { max_connections: "100", max_locks_per_transaction: "64", max_prepared_transactions: "0" };

/** The archive after an engine ran with these settings, one after the other, a second each; its base is at 500. */
function archiveAfter(...settings: readonly Readonly<Record<string, string>>[]): ArchiveObject {
  const made = newArchive(service, 0, 0);
  const based: ArchiveObject = { ...made, status: { ...made.status, lastAutomatedAt: 500 } };
  return settings.reduce<ArchiveObject>(
    (archive, each, index) => withSettings(archive, each, (index + 1) * 1_000) ?? archive,
    based,
  );
}

function due(archive: ArchiveObject, plan = small) {
  return dueBackup(service, archive, [], { now: 10_000, finalBackupTimeoutMs: 0, plan });
}

const scheduled = { kind: "now", trigger: "schedule" };

test("a base begins immediately when the log before lower settings needs a larger plan", () => {
  expect(due(archiveAfter(large, little))).toEqual(scheduled);
  expect(due(archiveAfter(large, { ...large, max_connections: "9000" }, little))).toEqual(scheduled);
  // Lowered in two steps, of which the last alone would fit.
  expect(due(archiveAfter(large, { ...little, max_connections: "200" }, little))).toEqual(scheduled);
});

test.each([
  ["while the engine still runs with them", archiveAfter(large), small],
  ["on a plan that has the memory", archiveAfter(large, little), { ...small, memoryBytes: 64 * gib }],
  ["for settings that the plan has memory for", archiveAfter({ ...little, max_connections: "200" }, little), small],
  ["for an engine without reported settings", archiveAfter(large, {}), small],
])("no base begins %s", (_, archive, plan) => {
  expect(due(archive, plan).kind).toBe("at");
});

test("a smaller plan is warned of earlier moments that need a larger one", () => {
  const lowered = archiveAfter(large, little);
  const range = { archiveId: "a", term: 1, firstSequence: 1, lastSequence: 2, keys: [], checkpoints: [] };
  const withLog = (fromTime: number) => ({
    ...lowered,
    status: { ...lowered.status, log: [{ ...range, fromTime, toTime: 9_000 }] },
  });
  const onPlan = (planName: string) => runningService({}, { planName, storageSizeGb: 1 });
  const [warning] = smallerPlanWarnings(withLog(500), onPlan("tier-1"), defaultCatalog);
  expect(warning).toMatch(/^Log from before 1970-01-01T00:00:02\.000Z .*max_connections = 8000.* tier-1 has/);
  expect(smallerPlanWarnings(withLog(500), onPlan("tier-16"), defaultCatalog)).toEqual([]);
  expect(smallerPlanWarnings(withLog(5_000), onPlan("tier-1"), defaultCatalog)).toEqual([]);
});

test("a recovery names the smallest plan that can replay the log after its base", () => {
  const { status: lowered } = archiveAfter(large, little);
  const onPlan = (planName: string) => runningService({}, { planName, storageSizeGb: 1 });
  const planFrom = (status: ArchiveObject["status"], baseStartedAt: number, planName = "tier-1") =>
    replayPlanOf(status, onPlan(planName), baseStartedAt, defaultCatalog);
  expect(planFrom(lowered, 500)).toMatchObject({ planName: "tier-4", memoryGb: 8 });
  expect(planFrom(lowered, 500, "tier-4")).toBeUndefined();
  expect(planFrom(lowered, 3_000)).toBeUndefined();
  expect(planFrom(archiveAfter(large).status, 3_000)).toMatchObject({ planName: "tier-4" });
  expect(planFrom(archiveAfter({ ...large, max_locks_per_transaction: "100000" }).status, 0)).toBeNull();
  expect(planFrom({ ...lowered, settings: undefined } as never, 0)).toBeUndefined();
});

test("a base after the lowering ends the demand", () => {
  const lowered = archiveAfter(large, little);
  const based = { ...lowered, status: { ...lowered.status, lastAutomatedAt: 3_000 } };
  expect(due(based).kind).toBe("at");
  const again = withSettings(based, { ...little, max_connections: "90" }, 4_000) ?? based;
  expect(due(again).kind).toBe("at");
});

test("unchanged settings write nothing", () => {
  expect(withSettings(archiveAfter(little), little, 5_000)).toBeUndefined();
});

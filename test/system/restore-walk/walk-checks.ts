import type { RestResponse } from "@holdfast/testing/api/rest-response.ts";
import {
  isHealthy,
  type OperationJson,
  type ProblemJson,
  type ServiceJson,
} from "@holdfast/testing/api/service-json.ts";
import { drilled } from "@holdfast/testing/platform/drills.ts";
import { recoverPlatform } from "@holdfast/testing/platform/recovered-platform.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { GiveUp, waitUntil } from "@holdfast/testing/wait-until.ts";
import { longMs, type ServiceFixture, walkEnvironment } from "./walk-fixture.ts";
import type { Moment } from "./walk-ledger.ts";
import type { PlannedMoment, WalkFeature } from "./walk-step.ts";

/** Executed steps of a walk, with their times. */
export interface TakenStep {
  readonly title: string;
  readonly startedAt: number;
  readonly endedAt: number;
}

export interface WalkCheck {
  readonly fixture: ServiceFixture;
  readonly steps: readonly TakenStep[];
  readonly without: ReadonlySet<WalkFeature>;
  readonly log: (line: string) => void;
}

interface BackupJson {
  readonly id: string;
  readonly status: string;
  readonly error_message: string | null;
  readonly restores_to: string | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
}

/** The promise of docs/how-to/backups.md, doubled for a busy machine. */
const windowReachesWithinMs = 120_000;

export interface Window {
  readonly from: number;
  readonly to: number;
  readonly gaps: readonly { readonly from: number; readonly to: number }[];
  /** Sentences that describe the differences. */
  readonly faults: readonly string[];
}

/** The window of the service, once it extends beyond the last acknowledged row. */
export async function windowAtRest({ fixture, without, log }: WalkCheck): Promise<Window> {
  await fixture.pause();
  const startedAt = Date.now();
  const last = Math.max(...fixture.ledger.rows.map(({ created }) => created.acknowledgedAt ?? 0));
  const readBackups = async () => (await fixture.services.get(fixture.source.service.id)).backups;
  const wait = { withinMs: longMs, everyMs: 100, describe: () => fixture.services.describe(fixture.source.service.id) };
  const { restorable, gaps } = await waitUntil(
    "the window reaches the last row",
    async () => {
      const found = await readBackups();
      const range = found?.restorable ?? undefined;
      return range !== undefined && Date.parse(range.to) > last && { restorable: range, gaps: found?.gaps ?? [] };
    },
    wait,
  );
  const tookMs = Date.now() - startedAt;
  log(`the window reached the last row ${(tookMs / 1_000).toFixed(1)} s after it`);
  const isLate = !without.has("window-at-rest") && tookMs > windowReachesWithinMs;
  const range = ({ from, to }: { from: string; to: string }) => ({
    from: Math.ceil(Date.parse(from)),
    to: Math.floor(Date.parse(to)),
  });
  const faults = isLate ? [`the window reached the last row only after ${tookMs} ms`] : [];
  return { ...range(restorable), gaps: gaps.map(range), faults };
}

/** The window of an engine without a log: from its first snapshot to its newest one. */
export async function windowOfSnapshots({ fixture }: WalkCheck): Promise<Window> {
  await fixture.pause();
  const { backups } = await fixture.services.get(fixture.source.service.id);
  const { restorable } = backups ?? {};
  if (restorable === undefined || restorable === null) throw new Error("there is no snapshot");
  const [from, to] = [Math.ceil(Date.parse(restorable.from)), Math.floor(Date.parse(restorable.to))];
  return { from, to, gaps: [], faults: [] };
}

/** Expects that times outside of the window are rejected with the window of the service. */
export async function checkOutsideWindow({ fixture }: WalkCheck, window: Window): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const at of [window.from - 60_000, window.to + 600_000]) {
    const restore_point = new Date(at).toISOString();
    const body = { restore_point, target_service_name: "never" };
    const { status, json } = await fixture.platform.rest.post<ProblemJson>(fixture.path("/backups/restore"), body);
    if (status !== 422 || json.code !== "restore_point_unavailable")
      faults.push(`a restore to ${restore_point} is answered with ${status} ${json.code}`);
  }
  return faults;
}

/** An interrupted backup is restarted a limited number of times, and then fails (docs/how-to/backups.md). */
const wasInterrupted = /^All \d+ attempts failed/;

/** Faults of requested backups: each has completed, unless it was interrupted repeatedly. */
export async function backupsOf(check: WalkCheck): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const { id } of check.fixture.backups) {
    const { status, error_message, restores_to } = await endedBackup(check, id);
    if (wasInterrupted.test(error_message ?? "")) check.log(`backup ${id} was interrupted: ${error_message}`);
    else if (status === "failed") faults.push(`backup ${id} failed: ${error_message}`);
    else if (restores_to === null) faults.push(`backup ${id} names no moment`);
  }
  return faults;
}

/** The service is healthy in the end, and every operation of it has ended. */
export async function healthOf({ fixture, log }: WalkCheck): Promise<readonly string[]> {
  const { services, source } = fixture;
  const isServiceHealthy = async () => isHealthy((await services.get(source.service.id)).health);
  const describe = () => services.describe(source.service.id);
  await waitUntil("the service is healthy", isServiceHealthy, { withinMs: longMs, everyMs: 200, describe });
  const operations = async () => await services.operations(source.service.id);
  const areOver = async () => (await operations()).every(({ finished_at }) => finished_at !== null);
  await waitUntil("every operation has ended", areOver, { withinMs: longMs, everyMs: 200, describe });
  for (const { type, error } of (await operations()).filter(({ status }) => status === "failed"))
    log(`${type} failed: ${error?.code} ${error?.message}`);
  return [];
}

/** Milliseconds since 1970 within the window. */
export function momentAt(
  moment: PlannedMoment,
  { from, to, gaps }: Pick<Window, "from" | "to" | "gaps">,
  steps: readonly TakenStep[],
): number {
  // Steps before the window began cannot be restored to.
  const inWindow = steps.filter(({ endedAt }) => endedAt > from);
  const step = inWindow[Math.floor(moment.fraction * inWindow.length)];
  const at =
    moment.of === "window" || step === undefined
      ? Math.round(from + moment.fraction * (to - from))
      : (moment.edge === "begin" ? step.startedAt : step.endedAt) + moment.offsetMs;
  const gap = gaps.find((each) => each.from <= at && at <= each.to);
  return Math.min(to, Math.max(from, gap?.to ?? at));
}

/** Faults of a copy, which must have exactly the contents of the moment; deletes the copy. */
async function checkCopy(
  check: WalkCheck,
  response: RestResponse<ServiceJson>,
  moment: (copy: ServiceJson) => Promise<Moment> | Moment,
): Promise<readonly string[]> {
  const { platform, services, faultsIn } = check.fixture;
  const copy = expectStatus(response, 202).json;
  const observed: ObservedProgress[] = [];
  const isSettled = async () => {
    const found = await services.get(copy.id);
    const { operation, status, error } = found;
    if (operation !== null) noteProgress(operation, observed);
    if (status === "Error") throw new GiveUp(`the copy is in Error: ${error?.message}`);
    return status === "Running" && operation === null ? found : undefined;
  };
  try {
    const describe = () => services.describe(copy.id);
    const settled = await waitUntil(`copy ${copy.name} is Running`, isSettled, { withinMs: longMs, describe });
    const found = await faultsIn(platform, await services.open(copy.id), await moment(settled));
    return [...found, ...(check.without.has("steps-in-order") ? [] : orderFaults(observed))];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  } finally {
    await platform.rest.insist("DELETE", `/managed-services/${copy.id}?skip_final_backup=true`);
    await services.deleted(copy.id, longMs);
  }
}

interface ObservedProgress {
  readonly step: string;
  readonly progress: number;
}

/** Steps of a restore in their order (spec 1). */
const restoreSteps = [
  "SetupNetwork",
  "SetupServer",
  "SetupAgent",
  "SetupDNS",
  "ProvisioningRestore",
  "ProvisioningHealth",
];

/** Appends the step with its progress where it differs from the last. */
function noteProgress({ step, progress_pct: progress }: OperationJson, observed: ObservedProgress[]): void {
  const last = observed.at(-1);
  if (step !== null && !(last?.step === step && last.progress === progress)) observed.push({ step, progress });
}

/** A step does not repeat, and progress never decreases. */
function orderFaults(observed: readonly ObservedProgress[]): string[] {
  const isInOrder = observed.every(({ step, progress }, index) => {
    const before = observed[index - 1];
    const at = restoreSteps.indexOf(step);
    return at >= restoreSteps.indexOf(before?.step ?? restoreSteps[0] ?? "") && progress >= (before?.progress ?? 0);
  });
  return isInOrder ? [] : [`its steps went back: ${JSON.stringify(observed)}`];
}

/**
 * Restores to a time. `isExact`: the engine has a log; without one the restored data are of the newest snapshot before
 * that time.
 */
export async function restoreTo(
  check: WalkCheck,
  at: number,
  { name, isExact }: { readonly name: string; readonly isExact: boolean },
): Promise<readonly string[]> {
  const { fixture } = check;
  const body = { restore_point: new Date(at).toISOString(), target_service_name: name };
  const response = await fixture.platform.rest.post<ServiceJson>(fixture.path("/backups/restore"), body);
  return checkCopy(check, response, async (copy) => {
    if (isExact) return { from: at, to: at };
    const { moment, named } = await momentOfCopy(check, copy);
    if (named > at) throw new Error(`the snapshot is of ${new Date(named).toISOString()}, behind the moment`);
    return moment;
  });
}

/** Moment of the backup that a copy was restored from. */
async function momentOfCopy(check: WalkCheck, { restored_from: from }: ServiceJson) {
  const backup = await backupOf(check, from?.backup_id ?? "");
  return {
    moment: momentOf(check, backup, Date.parse(backup.started_at ?? "")),
    named: Date.parse(backup.restores_to ?? ""),
  };
}

/** Moment of the newest completed backup, which a restore without a log has. */
export async function momentOfNewest(check: WalkCheck): Promise<Moment> {
  const { rest } = check.fixture.platform;
  const { json } = await rest.get<{ backups: BackupJson[] }>(check.fixture.path("/backups"));
  const newest = json.backups.find(({ status }) => status === "completed");
  if (newest === undefined) throw new Error("no backup is completed");
  return momentOf(check, newest, Date.parse(newest.started_at ?? ""));
}

async function backupOf({ fixture }: WalkCheck, id: string): Promise<BackupJson> {
  const response = await fixture.platform.rest.get<BackupJson>(fixture.path(`/backups/${id}`));
  return expectStatus(response, 200).json;
}

/** Moment of a backup's data, which are not older than the start of the backup, nor than the time that it names. */
function momentOf({ without }: WalkCheck, backup: BackupJson, startedAt: number): Moment {
  const named = Date.parse(backup.restores_to ?? "");
  const from = without.has("moment-of-backups") ? startedAt : Math.max(startedAt, named);
  return { from, to: Date.parse(backup.finished_at ?? "") };
}

function endedBackup(check: WalkCheck, id: string): Promise<BackupJson> {
  const ended = async () => {
    const backup = await backupOf(check, id);
    return ["completed", "failed"].includes(backup.status) && backup;
  };
  return waitUntil(`backup ${id} has ended`, ended, { withinMs: longMs, everyMs: 100 });
}

/** Restores a backup of the life by its id, or one that is taken now during writes. */
export async function restoreById(check: WalkCheck, name: string): Promise<readonly string[]> {
  const { fixture } = check;
  const ended = await Promise.all(fixture.backups.map(({ id }) => endedBackup(check, id)));
  const completed = fixture.backups.filter((_, index) => ended[index]?.status === "completed");
  const { id, startedAt } = completed.at(-1) ?? (await takeBackup(fixture));
  const backup = await endedBackup(check, id);
  if (backup.status === "failed") return [`backup ${id} failed: ${backup.error_message}`];
  const response = await fixture.platform.rest.post<ServiceJson>(fixture.path(`/backups/${id}/restore`), {
    target_service_name: name,
  });
  return checkCopy(check, response, () => momentOf(check, backup, startedAt));
}

async function takeBackup(fixture: ServiceFixture): Promise<{ id: string; startedAt: number }> {
  fixture.resume();
  await fixture.writesContinue();
  const startedAt = Date.now();
  const { json } = await fixture.call("POST", fixture.path("/backups"), [202]);
  await fixture.writesContinue();
  await fixture.pause();
  return { id: String(json["id"]), startedAt };
}

/** Forks the service from its newest backup. */
export async function checkFork(check: WalkCheck, name: string): Promise<readonly string[]> {
  const { fixture } = check;
  const response = await fixture.platform.rest.post<ServiceJson>(fixture.path("/fork"), { name });
  return checkCopy(check, response, async (copy) => (await momentOfCopy(check, copy)).moment);
}

/** Runs a drill of the newest backup and of a point in time; resolves with what failed, a sentence each. */
export async function checkDrill({ fixture }: WalkCheck): Promise<readonly string[]> {
  const { json } = await fixture.call("POST", fixture.path("/backups/drill"), [202]);
  const drill = await drilled(fixture.platform, fixture.source.service.id, String(json["id"]));
  const failed = drill.checks.filter(({ passed }) => !passed);
  return drill.status === "completed" && failed.length === 0
    ? []
    : [`the drill is ${drill.status}: ${drill.error} ${JSON.stringify(failed)}`];
}

/** Deletes the service during writes, and undeletes it under its id. */
export async function checkUndelete({ fixture }: WalkCheck): Promise<readonly string[]> {
  const { platform, services, source, faultsIn } = fixture;
  const { id } = source.service;
  fixture.resume();
  await fixture.writesContinue();
  await fixture.call("DELETE", fixture.path(), [202]);
  await services.deleted(id, longMs);
  await fixture.pause();
  const at = Date.now();
  await fixture.call("POST", fixture.path("/undelete"), [202]);
  await fixture.settled();
  return faultsIn(platform, await services.open(id), { from: at, to: at });
}

/** Removes the installation except its store and its keys, recovers it, and compares the service itself. */
export async function checkRecovery({ fixture }: WalkCheck, moment: Moment): Promise<readonly string[]> {
  const { id } = fixture.source.service;
  const { platform, remove } = await recoverPlatform(fixture.platform, walkEnvironment);
  try {
    const services = createServices(platform);
    await services.settled(id, "Running", longMs);
    return await fixture.faultsIn(platform, await services.open(id), moment);
  } finally {
    await remove();
  }
}

import type { RestAnswer } from "../../support/api/rest-answer.ts";
import type { OperationJson, ServiceJson } from "../../support/api/service-json.ts";
import { type DrillJson, drilled } from "../../support/platform/drills.ts";
import type { Platform } from "../../support/platform/platform.ts";
import { recoverPlatform } from "../../support/platform/recovered-platform.ts";
import { createServices, expectStatus } from "../../support/platform/services.ts";
import { GiveUp, waitUntil } from "../../support/wait-until.ts";
import { readContents } from "./read-contents.ts";
import { longMs, type WalkGround, walkEnvironment } from "./walk-ground.ts";
import { faultsOf, type Moment } from "./walk-ledger.ts";
import type { PlannedMoment, WalkFeature } from "./walk-step.ts";

/** Steps of a walk that were taken, and when. */
export interface TakenStep {
  readonly title: string;
  readonly begunAt: number;
  readonly endedAt: number;
}

export interface WalkCheck {
  readonly ground: WalkGround;
  readonly steps: readonly TakenStep[];
  readonly without: ReadonlySet<WalkFeature>;
  readonly say: (line: string) => void;
}

interface BackupJson {
  readonly id: string;
  readonly status: string;
  readonly error_message: string | null;
  readonly restores_to: string | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
}

/** The window that the service shows, once it reaches beyond the last acknowledged row. */
export async function windowAtRest({ ground, say }: WalkCheck): Promise<{ from: number; to: number }> {
  await ground.pause();
  const startedAt = Date.now();
  const last = Math.max(...ground.ledger.rows.map(({ made }) => made.acknowledgedAt ?? 0));
  const restorable = async () => (await ground.services.get(ground.source.service.id)).backups?.restorable;
  const wait = { withinMs: longMs, everyMs: 100, describe: () => ground.services.describe(ground.source.service.id) };
  const window = await waitUntil(
    "the window reaches the last row",
    async () => {
      const found = await restorable();
      return found !== null && found !== undefined && Date.parse(found.to) > last && found;
    },
    wait,
  );
  say(`the window reached the last row ${((Date.now() - startedAt) / 1_000).toFixed(1)} s after it`);
  return { from: Math.ceil(Date.parse(window.from)), to: Math.floor(Date.parse(window.to)) };
}

/** Milliseconds since 1970 within the window. */
export function momentAt(
  moment: PlannedMoment,
  window: { readonly from: number; readonly to: number },
  steps: readonly TakenStep[],
): number {
  const { from, to } = window;
  const step = steps[Math.floor(moment.fraction * steps.length)];
  if (moment.of === "window" || step === undefined) return Math.round(from + moment.fraction * (to - from));
  const at = (moment.edge === "begin" ? step.begunAt : step.endedAt) + moment.offsetMs;
  return Math.min(to, Math.max(from, at));
}

/** The copy has everything of the moment and nothing else; it is deleted after that. */
async function checkCopy(
  check: WalkCheck,
  answer: RestAnswer<ServiceJson>,
  moment: (copy: ServiceJson) => Promise<Moment> | Moment,
): Promise<readonly string[]> {
  const { platform, services, ledger } = check.ground;
  const copy = expectStatus(answer, 202).json;
  const seen: string[] = [];
  const isSettled = async () => {
    const found = await services.get(copy.id);
    const { operation, status, error } = found;
    if (operation !== null) noteProgress(operation, seen);
    if (status === "Error") throw new GiveUp(`the copy is in Error: ${error?.message}`);
    return status === "Running" && operation === null ? found : undefined;
  };
  try {
    const describe = () => services.describe(copy.id);
    const settled = await waitUntil(`copy ${copy.name} is Running`, isSettled, { withinMs: longMs, describe });
    const contents = await readContents(platform, await services.open(copy.id));
    const out = check.without.has("steps-in-order") ? [] : orderFaults(seen);
    return [...faultsOf(ledger, await moment(settled), contents), ...out];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  } finally {
    await platform.rest.insist("DELETE", `/managed-services/${copy.id}?skip_final_backup=true`);
    await services.gone(copy.id, longMs);
  }
}

/** Appends the step with its progress where it is another one than the last. */
function noteProgress({ step, progress_pct }: OperationJson, seen: string[]): void {
  const text = `${progress_pct} ${step}`;
  if (seen.at(-1) !== text) seen.push(text);
}

/** A step that was left does not come again, and progress never falls. */
function orderFaults(seen: readonly string[]): string[] {
  const parts = seen.map((text) => ({ progress: Number(text.split(" ")[0]), step: text.split(" ")[1] }));
  const left = new Set<string>();
  for (const [index, { progress, step = "" }] of parts.entries()) {
    const before = parts[index - 1];
    if (before !== undefined && before.step !== step) left.add(before.step ?? "");
    if (left.has(step) || progress < (before?.progress ?? 0)) return [`its steps went back: ${seen.join(", ")}`];
  }
  return [];
}

/** Restores to the moment. */
export function restoreTo(check: WalkCheck, at: number, name: string): Promise<readonly string[]> {
  const { ground } = check;
  const body = { restore_point: new Date(at).toISOString(), target_service_name: name };
  return ground.platform.rest
    .post<ServiceJson>(ground.path("/backups/restore"), body)
    .then((answer) => checkCopy(check, answer, () => ({ from: at, to: at })));
}

async function backupOf({ ground }: WalkCheck, id: string): Promise<BackupJson> {
  const answer = await ground.platform.rest.get<BackupJson>(ground.path(`/backups/${id}`));
  return expectStatus(answer, 200).json;
}

/** Data of a backup are not older than its begin, nor than the moment that it names. */
function momentOf({ without }: WalkCheck, backup: BackupJson, begunAt: number): Moment {
  const named = Date.parse(backup.restores_to ?? "");
  const from = without.has("moment-of-backups") ? begunAt : Math.max(begunAt, named);
  return { from, to: Date.parse(backup.finished_at ?? "") };
}

/** Takes a backup while rows are written, and restores it by its id. */
export async function restoreById(check: WalkCheck, name: string): Promise<readonly string[]> {
  const { ground } = check;
  ground.resume();
  await ground.writesGoOn();
  const begunAt = Date.now();
  const { json } = await ground.call("POST", ground.path("/backups"), [202]);
  const id = String(json["id"]);
  const ended = async () => {
    const backup = await backupOf(check, id);
    return ["completed", "failed"].includes(backup.status) && backup;
  };
  const backup = await waitUntil("the backup has ended", ended, { withinMs: longMs, everyMs: 100 });
  await ground.writesGoOn();
  await ground.pause();
  if (backup.status === "failed") return [`the backup failed: ${backup.error_message}`];
  const answer = await ground.platform.rest.post<ServiceJson>(ground.path(`/backups/${id}/restore`), {
    target_service_name: name,
  });
  return checkCopy(check, answer, () => momentOf(check, backup, begunAt));
}

/** Forks the service out of its newest backup. */
export async function forkIt(check: WalkCheck, name: string): Promise<readonly string[]> {
  const { ground } = check;
  const answer = await ground.platform.rest.post<ServiceJson>(ground.path("/fork"), { name });
  return checkCopy(check, answer, async ({ restored_from: from }) => {
    const backup = await backupOf(check, from?.backup_id ?? "");
    return momentOf(check, backup, Date.parse(backup.started_at ?? ""));
  });
}

/** A drill of the newest backup and of a moment. */
export async function drillIt({ ground }: WalkCheck): Promise<readonly string[]> {
  const { json } = await ground.call("POST", ground.path("/backups/drill"), [202]);
  const { id } = json as unknown as DrillJson;
  const drill = await drilled(ground.platform, ground.source.service.id, id);
  const failed = drill.checks.filter(({ passed }) => !passed);
  return drill.status === "completed" && failed.length === 0
    ? []
    : [`the drill is ${drill.status}: ${drill.error} ${JSON.stringify(failed)}`];
}

/** Removes the installation but its store and its keys, recovers it, and looks for everything in the service itself. */
export async function recoverIt({ ground }: WalkCheck, window: { readonly to: number }): Promise<readonly string[]> {
  const { id } = ground.source.service;
  const recovered = await recoverPlatform(ground.platform, walkEnvironment);
  try {
    return await faultsAfter(recovered.platform, id, ground, window);
  } finally {
    await recovered.remove();
  }
}

async function faultsAfter(platform: Platform, id: string, { ledger }: WalkGround, { to }: { readonly to: number }) {
  const services = createServices(platform);
  await services.settled(id, "Running", longMs);
  const contents = await readContents(platform, await services.open(id));
  return faultsOf(ledger, { from: to, to: Date.now() }, contents);
}

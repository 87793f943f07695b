import { setTimeout as sleep } from "node:timers/promises";
import { crashesOf } from "../../support/platform/platform-logs.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { takeStep } from "./take-step.ts";
import {
  backupsOf,
  besideWindow,
  drillIt,
  forkIt,
  healthOf,
  momentAt,
  recoverIt,
  restoreById,
  restoreTo,
  type TakenStep,
  undeleteIt,
  type WalkCheck,
  windowAtRest,
} from "./walk-checks.ts";
import { longMs, openWalkGround, type WalkGround } from "./walk-ground.ts";
import { planMoments, planSteps, type WalkChoice } from "./walk-plan.ts";
import type { PlannedStep } from "./walk-step.ts";

/** Ways back to the data beside the moments. */
export type WalkEnd = "id" | "fork" | "drill" | "undelete" | "recovery";
/** In their order: the installation ends with the last one. */
export const walkEnds: readonly WalkEnd[] = ["id", "fork", "drill", "undelete", "recovery"];

export interface WalkOptions extends WalkChoice {
  /** Steps end after so many, or when the time is over, whichever comes first. */
  readonly steps: number;
  readonly lifeMs?: number;
  readonly moments: number;
  readonly ends: readonly WalkEnd[];
  readonly say: (line: string) => void;
  /** Called with the installation's directory before a walk that failed removes it. */
  readonly onFailure?: (directory: string) => void;
}

export interface WalkResult {
  readonly steps: number;
  readonly rows: number;
  readonly objects: number;
  /** Acknowledged steps, by their kind. */
  readonly done: Readonly<Record<string, number>>;
}

/**
 * A random life of a PostgreSQL service, and each way back to its data. Throws with the seed
 * and what is missing when any of them brings back something else than the ledger says.
 */
export async function runRestoreWalk(options: WalkOptions): Promise<WalkResult> {
  const { seed } = options;
  const startedAt = Date.now();
  const say = (line: string) => options.say(`${((Date.now() - startedAt) / 1_000).toFixed(1).padStart(7)}  ${line}`);
  say(`seed ${seed}`);
  const ground = await openWalkGround();
  try {
    return await walkOn(ground, { ...options, say });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    options.onFailure?.(ground.platform.directory);
    throw new Error(`seed ${seed}: ${message}`, { cause: error });
  } finally {
    await ground.remove();
  }
}

async function walkOn(ground: WalkGround, options: WalkOptions): Promise<WalkResult> {
  const { say, seed, without } = options;
  const restorable = async () => (await ground.services.get(ground.source.service.id)).backups?.restorable ?? null;
  const wait = { withinMs: longMs, describe: () => ground.services.describe(ground.source.service.id) };
  await waitUntil("the log goes on from a base", async () => (await restorable()) !== null, wait);

  const steps: TakenStep[] = [];
  const done: Record<string, number> = {};
  const lifeEnds = Date.now() + (options.lifeMs ?? Number.POSITIVE_INFINITY);
  for (const planned of planSteps(options)) {
    if (steps.length >= options.steps || Date.now() > lifeEnds) break;
    const { outcome, ...taken } = await takeOne(ground, planned);
    say(`step ${steps.length} ${taken.title}: ${outcome}`);
    steps.push(taken);
    if (!/^(refused:|skipped|interrupted|failed)/.test(outcome))
      done[planned.step.kind] = (done[planned.step.kind] ?? 0) + 1;
  }

  const check: WalkCheck = { ground, steps, without, say };
  const window = await windowAtRest(check);
  const faults: string[] = [];
  const note = (what: string, found: readonly string[]) => {
    say(`${what}: ${found.length === 0 ? "all is there" : found.join("\n")}`);
    faults.push(...found.map((fault) => `${what}: ${fault}`));
  };
  note("window", [...window.faults, ...(await besideWindow(check, window))]);
  note("health", await healthOf(check));
  note("backups", await backupsOf(check));
  if (faults.length > 0) options.onFailure?.(ground.platform.directory);
  for (const [index, moment] of planMoments(seed, options.moments).entries()) {
    const at = momentAt(moment, window, steps);
    note(`moment ${new Date(at).toISOString()}`, await restoreTo(check, at, `then-${index}`));
  }
  for (const end of options.ends.filter((each) => each !== "undelete" || !without.has("undelete"))) {
    if (end === "id") note("by id", await restoreById(check, "by-id"));
    if (end === "fork") note("fork", await forkIt(check, "fork"));
    if (end === "drill") note("drill", await drillIt(check));
    if (end === "undelete") note("undelete", await undeleteIt(check));
    if (end === "recovery") note("recovery", await recoverIt(check, await windowAtRest(check)));
  }
  const crashes = crashesOf(ground.platform.directory);
  faults.push(...crashes.map((crash) => `crash: ${crash}`));
  if (faults.length > 0) throw new Error(faults.join("\n"));
  const { rows, objects } = ground.ledger;
  const acknowledged = (all: readonly { made: { acknowledgedAt?: number } }[]) =>
    all.filter(({ made }) => made.acknowledgedAt !== undefined).length;
  return { steps: steps.length, rows: acknowledged(rows), objects: acknowledged(objects), done };
}

/** Takes a step, kills what goes with it, and resolves when the service is well again. */
async function takeOne(
  ground: WalkGround,
  { step, kill }: PlannedStep,
): Promise<TakenStep & { readonly outcome: string }> {
  const title = `${JSON.stringify(step)}${kill === undefined ? "" : ` with ${JSON.stringify(kill)}`}`;
  const killing = kill && sleep(kill.afterMs).then(() => ground.kill(kill.victim));
  const begunAt = Date.now();
  try {
    const outcome = await takeStep(ground, step);
    const endedAt = Date.now();
    await killing;
    await ground.settled();
    await ground.writesGoOn();
    return { title, begunAt, endedAt, outcome };
  } catch (error) {
    throw new Error(`${title}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

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
  momentOfNewest,
  recoverIt,
  restoreById,
  restoreTo,
  type TakenStep,
  undeleteIt,
  type WalkCheck,
  windowAtRest,
  windowOfSnapshots,
} from "./walk-checks.ts";
import { takeValkeyStep } from "./take-valkey-step.ts";
import { openValkeyGround, type ValkeyGround } from "./valkey-ground.ts";
import { planValkeySteps } from "./valkey-plan.ts";
import { longMs, openWalkGround, type ServiceGround, type WalkGround } from "./walk-ground.ts";
import { planMoments, planSteps, type WalkChoice } from "./walk-plan.ts";
import type { PlannedStep, ValkeyStep, WalkStep } from "./walk-step.ts";

/** Ways back to the data beside the moments. */
export type WalkEnd = "id" | "fork" | "drill" | "undelete" | "recovery";
/** In their order: the installation ends with the last one. */
export const walkEnds: readonly WalkEnd[] = ["id", "fork", "drill", "undelete", "recovery"];

export interface WalkOptions extends WalkChoice {
  /** Absent: postgresql. */
  readonly type?: "postgresql" | "valkey";
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

/** What a walk of one engine is made of. */
interface WalkOf<G extends ServiceGround, S> {
  readonly open: () => Promise<G>;
  readonly plan: (choice: WalkChoice) => Iterable<PlannedStep<S>>;
  readonly take: (ground: G, step: S) => Promise<string>;
  /** Is any moment of the window brought back, or the newest backup before it? */
  readonly isExact: boolean;
}

const postgresqlWalk: WalkOf<WalkGround, WalkStep> = {
  open: openWalkGround,
  plan: planSteps,
  take: takeStep,
  isExact: true,
};
const valkeyWalk: WalkOf<ValkeyGround, ValkeyStep> = {
  open: openValkeyGround,
  plan: planValkeySteps,
  take: takeValkeyStep,
  isExact: false,
};

/**
 * A random life of a service, and each way back to its data. Throws with the seed
 * and what is missing when any of them brings back something else than the ledger says.
 */
export function runRestoreWalk(options: WalkOptions): Promise<WalkResult> {
  return options.type === "valkey" ? walk(options, valkeyWalk) : walk(options, postgresqlWalk);
}

async function walk<G extends ServiceGround, S extends { readonly kind: string }>(
  options: WalkOptions,
  its: WalkOf<G, S>,
): Promise<WalkResult> {
  const { seed } = options;
  const startedAt = Date.now();
  const say = (line: string) => options.say(`${((Date.now() - startedAt) / 1_000).toFixed(1).padStart(7)}  ${line}`);
  say(`seed ${seed}`);
  const ground = await its.open();
  try {
    return await walkOn(ground, its, { ...options, say });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    options.onFailure?.(ground.platform.directory);
    throw new Error(`seed ${seed}: ${message}`, { cause: error });
  } finally {
    await ground.remove();
  }
}

async function walkOn<G extends ServiceGround, S extends { readonly kind: string }>(
  ground: G,
  its: WalkOf<G, S>,
  options: WalkOptions,
): Promise<WalkResult> {
  const { say, seed, without } = options;
  const restorable = async () => (await ground.services.get(ground.source.service.id)).backups?.restorable ?? null;
  const wait = { withinMs: longMs, describe: () => ground.services.describe(ground.source.service.id) };
  await waitUntil("a backup can be restored", async () => (await restorable()) !== null, wait);

  const steps: TakenStep[] = [];
  const done: Record<string, number> = {};
  const lifeEnds = Date.now() + (options.lifeMs ?? Number.POSITIVE_INFINITY);
  for (const planned of its.plan(options)) {
    if (steps.length >= options.steps || Date.now() > lifeEnds) break;
    const { outcome, ...taken } = await takeOne(ground, its, planned);
    say(`step ${steps.length} ${taken.title}: ${outcome}`);
    steps.push(taken);
    if (!/^(refused:|skipped|interrupted|failed)/.test(outcome))
      done[planned.step.kind] = (done[planned.step.kind] ?? 0) + 1;
  }

  const check: WalkCheck = { ground, steps, without, say };
  const windowOf = its.isExact ? windowAtRest : windowOfSnapshots;
  const window = await windowOf(check);
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
    const copy = { name: `then-${index}`, isExact: its.isExact };
    note(`moment ${new Date(at).toISOString()}`, await restoreTo(check, at, copy));
  }
  for (const end of options.ends.filter((each) => each !== "undelete" || !without.has("undelete"))) {
    if (end === "id") note("by id", await restoreById(check, "by-id"));
    if (end === "fork") note("fork", await forkIt(check, "fork"));
    if (end === "drill") note("drill", await drillIt(check));
    if (end === "undelete") note("undelete", await undeleteIt(check));
    if (end === "recovery") {
      const { to } = await windowOf(check);
      note(
        "recovery",
        await recoverIt(check, its.isExact ? { from: to, to: Date.now() } : await momentOfNewest(check)),
      );
    }
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
async function takeOne<G extends ServiceGround, S extends { readonly kind: string }>(
  ground: G,
  its: WalkOf<G, S>,
  { step, kill }: PlannedStep<S>,
): Promise<TakenStep & { readonly outcome: string }> {
  const title = `${JSON.stringify(step)}${kill === undefined ? "" : ` with ${JSON.stringify(kill)}`}`;
  const killing = kill && sleep(kill.afterMs).then(() => ground.kill(kill.victim));
  const begunAt = Date.now();
  try {
    const outcome = await its.take(ground, step);
    const endedAt = Date.now();
    await killing;
    await ground.settled();
    await ground.writesGoOn();
    return { title, begunAt, endedAt, outcome };
  } catch (error) {
    throw new Error(`${title}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

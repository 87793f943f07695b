import { setTimeout as sleep } from "node:timers/promises";
import { crashesOf } from "@holdfast/testing/platform/platform-logs.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { takeStep } from "./take-step.ts";
import {
  backupsOf,
  checkOutsideWindow,
  checkDrill,
  checkFork,
  healthOf,
  momentAt,
  momentOfNewest,
  checkRecovery,
  restoreById,
  restoreTo,
  type TakenStep,
  checkUndelete,
  type WalkCheck,
  windowAtRest,
  windowOfSnapshots,
} from "./walk-checks.ts";
import { takeValkeyStep } from "./take-valkey-step.ts";
import { openValkeyFixture, type ValkeyFixture } from "./valkey-fixture.ts";
import { planValkeySteps } from "./valkey-plan.ts";
import { longMs, openWalkFixture, type ServiceFixture, type WalkFixture } from "./walk-fixture.ts";
import { planMoments, planSteps, type WalkChoice } from "./walk-plan.ts";
import type { PlannedStep, ValkeyStep, WalkStep } from "./walk-step.ts";

/** Ways to restore the data besides a restore to a point in time. */
export type WalkEnd = "id" | "fork" | "drill" | "undelete" | "recovery";
/** All ways, in the order in which a walk takes them: the last one removes the installation. */
export const walkEnds: readonly WalkEnd[] = ["id", "fork", "drill", "undelete", "recovery"];

export interface WalkOptions extends WalkChoice {
  /** Engine of the service; absent: postgresql. */
  readonly type?: "postgresql" | "valkey";
  /** Maximum number of steps; fewer if the time is over before. */
  readonly steps: number;
  readonly lifeMs?: number;
  readonly moments: number;
  readonly ends: readonly WalkEnd[];
  readonly log: (line: string) => void;
  /** Called with the installation's directory before a failed walk removes it. */
  readonly onFailure?: (directory: string) => void;
}

export interface WalkResult {
  readonly steps: number;
  readonly rows: number;
  readonly objects: number;
  /** Number of acknowledged steps, by kind. */
  readonly done: Readonly<Record<string, number>>;
}

/** Engine-specific parts of a walk. */
interface EngineWalk<G extends ServiceFixture, S> {
  readonly open: () => Promise<G>;
  readonly plan: (choice: WalkChoice) => Iterable<PlannedStep<S>>;
  readonly take: (fixture: G, step: S) => Promise<string>;
  /** True if every point in time of the window can be restored; false if only backups can. */
  readonly isExact: boolean;
}

const postgresqlWalk: EngineWalk<WalkFixture, WalkStep> = {
  open: openWalkFixture,
  plan: planSteps,
  take: takeStep,
  isExact: true,
};
const valkeyWalk: EngineWalk<ValkeyFixture, ValkeyStep> = {
  open: openValkeyFixture,
  plan: planValkeySteps,
  take: takeValkeyStep,
  isExact: false,
};

/**
 * Runs random steps on a service, then each way to restore its data. Throws with the seed and the differences when a
 * restore does not match the ledger.
 */
export function runRestoreWalk(options: WalkOptions): Promise<WalkResult> {
  return options.type === "valkey" ? walk(options, valkeyWalk) : walk(options, postgresqlWalk);
}

async function walk<G extends ServiceFixture, S extends { readonly kind: string }>(
  options: WalkOptions,
  engineWalk: EngineWalk<G, S>,
): Promise<WalkResult> {
  const { seed } = options;
  const startedAt = Date.now();
  const log = (line: string) => options.log(`${((Date.now() - startedAt) / 1_000).toFixed(1).padStart(7)}  ${line}`);
  log(`seed ${seed}`);
  const fixture = await engineWalk.open();
  try {
    return await walkOn(fixture, engineWalk, { ...options, log });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    options.onFailure?.(fixture.platform.directory);
    throw new Error(`seed ${seed}: ${message}`, { cause: error });
  } finally {
    await fixture.remove();
  }
}

async function walkOn<G extends ServiceFixture, S extends { readonly kind: string }>(
  fixture: G,
  engineWalk: EngineWalk<G, S>,
  options: WalkOptions,
): Promise<WalkResult> {
  const { log, seed, without } = options;
  const restorable = async () => (await fixture.services.get(fixture.source.service.id)).backups?.restorable ?? null;
  const wait = { withinMs: longMs, describe: () => fixture.services.describe(fixture.source.service.id) };
  await waitUntil("a backup can be restored", async () => (await restorable()) !== null, wait);

  const steps: TakenStep[] = [];
  const done: Record<string, number> = {};
  const lifeEnds = Date.now() + (options.lifeMs ?? Number.POSITIVE_INFINITY);
  for (const planned of engineWalk.plan(options)) {
    if (steps.length >= options.steps || Date.now() > lifeEnds) break;
    const { outcome, ...taken } = await takeOne(fixture, engineWalk, planned);
    log(`step ${steps.length} ${taken.title}: ${outcome}`);
    steps.push(taken);
    if (!/^(refused:|skipped|interrupted|failed)/.test(outcome))
      done[planned.step.kind] = (done[planned.step.kind] ?? 0) + 1;
  }

  const check: WalkCheck = { fixture, steps, without, log };
  const windowOf = engineWalk.isExact ? windowAtRest : windowOfSnapshots;
  const window = await windowOf(check);
  const faults: string[] = [];
  const note = (what: string, found: readonly string[]) => {
    log(`${what}: ${found.length === 0 ? "no difference" : found.join("\n")}`);
    faults.push(...found.map((fault) => `${what}: ${fault}`));
  };
  note("window", [...window.faults, ...(await checkOutsideWindow(check, window))]);
  note("health", await healthOf(check));
  note("backups", await backupsOf(check));
  if (faults.length > 0) options.onFailure?.(fixture.platform.directory);
  for (const [index, moment] of planMoments(seed, options.moments).entries()) {
    const at = momentAt(moment, window, steps);
    const copy = { name: `then-${index}`, isExact: engineWalk.isExact };
    note(`moment ${new Date(at).toISOString()}`, await restoreTo(check, at, copy));
  }
  for (const end of options.ends.filter((each) => each !== "undelete" || !without.has("undelete"))) {
    if (end === "id") note("by id", await restoreById(check, "by-id"));
    if (end === "fork") note("fork", await checkFork(check, "fork"));
    if (end === "drill") note("drill", await checkDrill(check));
    if (end === "undelete") note("undelete", await checkUndelete(check));
    if (end === "recovery") {
      const { to } = await windowOf(check);
      note(
        "recovery",
        await checkRecovery(check, engineWalk.isExact ? { from: to, to: Date.now() } : await momentOfNewest(check)),
      );
    }
  }
  const crashes = crashesOf(fixture.platform.directory);
  faults.push(...crashes.map((crash) => `crash: ${crash}`));
  if (faults.length > 0) throw new Error(faults.join("\n"));
  const { rows, objects } = fixture.ledger;
  const acknowledged = (all: readonly { created: { acknowledgedAt?: number } }[]) =>
    all.filter(({ created }) => created.acknowledgedAt !== undefined).length;
  return { steps: steps.length, rows: acknowledged(rows), objects: acknowledged(objects), done };
}

/** Takes a step, kills its victim, and resolves when the service has recovered. */
async function takeOne<G extends ServiceFixture, S extends { readonly kind: string }>(
  fixture: G,
  engineWalk: EngineWalk<G, S>,
  { step, kill }: PlannedStep<S>,
): Promise<TakenStep & { readonly outcome: string }> {
  const title = `${JSON.stringify(step)}${kill === undefined ? "" : ` with ${JSON.stringify(kill)}`}`;
  // Time: the moment of the kill.
  const killing = kill && sleep(kill.afterMs).then(() => fixture.kill(kill.victim));
  const startedAt = Date.now();
  try {
    const outcome = await engineWalk.take(fixture, step);
    const endedAt = Date.now();
    await killing;
    await fixture.settled();
    await fixture.writesContinue();
    return { title, startedAt, endedAt, outcome };
  } catch (error) {
    throw new Error(`${title}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

/** Runs a walk; the error of a failed one contains its steps. */
export async function walkUnderTest(options: Omit<WalkOptions, "log">): Promise<WalkResult> {
  const lines: string[] = [];
  try {
    return await runRestoreWalk({ ...options, log: (line) => lines.push(line) });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`${message}\n${lines.join("\n")}`, { cause: error });
  }
}

// A random life of a service and each way back to its data: npm run faults -- --restore-walk [--seed N] [--minutes N] [--steps N]
import { parseArgs } from "node:util";
import { leftOut } from "../system/restore-walk/left-out.ts";
import { runRestoreWalk, walkEnds } from "../system/restore-walk/restore-walk.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    minutes: { type: "string", default: "10" },
    steps: { type: "string", default: "100000" },
    moments: { type: "string", default: "5" },
    all: { type: "boolean", default: false },
  },
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const [minutes, steps, moments] = [values.minutes, values.steps, values.moments].map(Number);
if (![seed, steps, moments].every(Number.isInteger) || !(minutes !== undefined && minutes > 0))
  throw new Error("--seed, --steps and --moments are whole numbers, --minutes is a number");

// The ways back take about a third of the time.
const lifeMs = minutes * 60_000 * 0.65;
const say = (line: string) => console.log(line);
try {
  const without = values.all ? new Set<never>() : leftOut;
  const options = { seed, steps: steps ?? 0, moments: moments ?? 0, lifeMs, without, ends: walkEnds, say };
  console.log(JSON.stringify(await runRestoreWalk(options)));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  console.error(`failed; again with: npm run faults -- --restore-walk --seed ${seed} --minutes ${minutes}`);
  process.exitCode = 1;
}

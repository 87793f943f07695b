// Random steps on a service, then each way to restore its data: npm run faults -- --restore-walk [--seed N] [--minutes
// N] [--steps N] [--type valkey] runs that of a Valkey; [--logs DIRECTORY] saves the logs of a walk that failed.
// [--ends id,fork] takes these restores alone, and --short omits slow ones. [--with FEATURE]... includes features that
// are excluded until they are fixed; "all" includes all of them.
import { cpSync } from "node:fs";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { findSoftware, imagesDirectory } from "@holdfast/image/node-image.ts";
import { excludedFeatures } from "../system/restore-walk/walk-step.ts";
import { logFiles } from "@holdfast/testing/platform/platform-logs.ts";
import { runRestoreWalk, walkEnds } from "../system/restore-walk/restore-walk.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    type: { type: "string", default: "postgresql" },
    minutes: { type: "string", default: "10" },
    steps: { type: "string", default: "100000" },
    moments: { type: "string", default: "5" },
    with: { type: "string", multiple: true, default: [] },
    logs: { type: "string" },
    ends: { type: "string", default: walkEnds.join() },
    short: { type: "boolean", default: false },
  },
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const [minutes, steps, moments] = [values.minutes, values.steps, values.moments].map(Number);
if (![seed, steps, moments].every(Number.isInteger) || !(minutes !== undefined && minutes > 0))
  throw new Error("--seed, --steps and --moments are integers, --minutes is a number");

const type = (["postgresql", "valkey"] as const).find((each) => each === values.type);
if (type === undefined) throw new Error("--type is postgresql or valkey");

// The restores take about a third of the time.
const lifeMs = minutes * 60_000 * 0.65;
const log = (line: string) => console.log(line);
try {
  const isIn = (feature: string) => values.with.includes(feature) || values.with.includes("all");
  const without = new Set([...excludedFeatures].filter((feature) => !isIn(feature)));
  const upgradeTo = findSoftware(imagesDirectory(process.env), "postgresql", "18") === undefined ? undefined : "18";
  const options = {
    type,
    seed,
    steps: steps ?? 0,
    moments: moments ?? 0,
    lifeMs,
    without,
    log,
    onFailure: (directory: string) => {
      for (const file of values.logs === undefined ? [] : logFiles(directory))
        cpSync(file, join(values.logs ?? "", relative(directory, file).replaceAll("/", "_")));
    },
    ends: walkEnds.filter((end) => values.ends.split(",").includes(end)),
    isShort: values.short,
    ...(upgradeTo !== undefined && { upgradeTo }),
  };
  console.log(JSON.stringify(await runRestoreWalk(options)));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  console.error(
    `failed; again with: npm run faults -- --restore-walk --type ${type} --seed ${seed} --minutes ${minutes}`,
  );
  process.exitCode = 1;
}

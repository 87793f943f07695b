// Long runs of random kills: npm run faults -- [--kills N] [--seed N]
import { parseArgs } from "node:util";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { lastLogLines } from "@holdfast/testing/platform/platform-logs.ts";
import { faultSettings } from "./check-requested.ts";
import { runFaults } from "./run-faults.ts";

const { values } = parseArgs({
  options: { kills: { type: "string", default: "500" }, seed: { type: "string" }, verbose: { type: "boolean" } },
});
const kills = Number(values.kills);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
if (!Number.isInteger(kills) || kills < 1 || !Number.isInteger(seed))
  throw new Error("--kills and --seed are integers");

const startedAt = Date.now();
const log = (line: string) => console.log(`${((Date.now() - startedAt) / 1_000).toFixed(1).padStart(8)}  ${line}`);
log(`seed ${seed}, ${kills} kills`);
const platform = await startPlatform({ environment: faultSettings });
try {
  const result = await runFaults(platform, { seed, kills, log });
  log(`all is as requested: ${JSON.stringify(result)}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  console.error(lastLogLines(platform.directory, 30));
  console.error(`failed; again with: npm run faults -- --kills ${kills} --seed ${seed}`);
  process.exitCode = 1;
} finally {
  await platform.remove();
}

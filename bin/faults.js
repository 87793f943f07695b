// Faults for longer than `npm test` has time for:
//
//   npm run faults -- [--kills N] [--seed N]   random kills
//   npm run faults -- --outages                each outage for the whole minute of the specification, not for 20 s
import { spawn } from "node:child_process";
import { join } from "node:path";
import { checkout, progress, SetUpError, setUp } from "./set-up.js";

try {
  const { node, env } = await setUp();
  const flags = process.argv.slice(2);
  const outages = flags.includes("--outages");
  const args = outages
    ? [join(checkout, "node_modules", "vitest", "vitest.mjs"), "run", "test/faults/outages.test.ts"]
    : [join(checkout, "test", "faults", "run.ts"), ...flags];
  const child = spawn(node, args, {
    env: outages ? { ...env, HOLDFAST_TEST_OUTAGE_S: "60" } : env,
    cwd: checkout,
    stdio: "inherit",
  });
  child.once("exit", (code) => {
    process.exitCode = code ?? 1;
  });
} catch (error) {
  if (!(error instanceof SetUpError)) throw error;
  progress(error.message);
  process.exitCode = 1;
}

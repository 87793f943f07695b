// Faults for longer than `npm test` has time for:
//
//   npm run faults -- [--kills N] [--seed N]   random kills
//   npm run faults -- --outages                each outage for the whole minute of the specification, not for 20 s
//   npm run faults -- --incus                  the faults of machines of Incus, with a pause and a cut of five minutes
//   npm run faults -- --hosts                  two hosts with machines of Incus: full, lost, emptied
//   npm run faults -- --middle [--seed N]      kills at each step of an image's replacement and of an agent's upgrade
import { join } from "node:path";
import { runPinned } from "./run-pinned.js";
import { checkout } from "./set-up.js";

const flags = process.argv.slice(2);
const vitest = join(checkout, "node_modules", "vitest", "vitest.mjs");
if (flags.includes("--outages")) {
  await runPinned([vitest, "run", "test/faults/outages.test.ts"], { HOLDFAST_TEST_OUTAGE_S: "60" });
} else if (flags.includes("--incus")) {
  await runPinned([vitest, "run", "test/faults/machines.test.ts"], { HOLDFAST_TEST_PAUSE_S: "300" });
} else if (flags.includes("--hosts")) {
  await runPinned([vitest, "run", "test/faults/incus-hosts.test.ts"], { HOLDFAST_TEST_HOSTS: "1" });
} else if (flags.includes("--middle")) {
  const rest = flags.filter((flag) => flag !== "--middle");
  await runPinned([join(checkout, "test", "faults", "run-middle.ts"), ...rest]);
} else {
  await runPinned([join(checkout, "test", "faults", "run.ts"), ...flags]);
}

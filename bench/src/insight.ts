import { parseArgs } from "node:util";
import { measureDelay } from "./insight/delay.ts";
import { measureEngineMetrics } from "./insight/engine-metrics.ts";
import { measureExposition } from "./insight/exposition.ts";
import { measureGuard } from "./insight/guard.ts";
import { measureRules } from "./insight/rules.ts";
import { measureStatistics } from "./insight/statistics.ts";
import { printHost } from "./support/host.ts";

// Cost of observing a database, part by part. `metrics` measures charts.
const { values } = parseArgs({
  options: {
    only: { type: "string", default: "guard,statistics,engine-metrics,exposition,rules,delay" },
    rounds: { type: "string", default: "300" },
    services: { type: "string", default: "1000" },
    rules: { type: "string", default: "10000" },
    seconds: { type: "string", default: "45" },
    alerts: { type: "string", default: "20" },
  },
});
const rounds = Number(values.rounds);
const parts: Readonly<Record<string, () => Promise<void>>> = {
  guard: () => measureGuard(rounds),
  statistics: () => measureStatistics(rounds),
  "engine-metrics": () => measureEngineMetrics(rounds),
  exposition: () => measureExposition(Number(values.services), rounds),
  rules: () => measureRules(Number(values.rules), Number(values.seconds)),
  delay: () => measureDelay(Number(values.alerts)),
};

printHost();
for (const name of values.only.split(",")) {
  const measure = parts[name];
  if (measure === undefined) throw new Error(`--only takes ${Object.keys(parts).join(",")}`);
  await measure();
}

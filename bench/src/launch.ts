import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { incusMissing } from "@holdfast/testing/machines/incus-machines.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { median, ms, print, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// Time from the order to start a machine to its agent's stream, certificate included, by the controller's log. The time
// of an empty Node process beside it shows the load of the host: most of a launch is two of them.
const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    provider: { type: "string", default: "process,incus" },
    "rest-seconds": { type: "string", default: "20" },
  },
});
const rounds = Number(values.rounds);

interface LogLine {
  readonly time?: number | string;
  readonly msg?: string;
  readonly machine?: string;
  readonly event?: string;
}

printHost();
for (const provider of values.provider.split(",")) {
  const missing = provider === "incus" ? await incusMissing() : undefined;
  if (missing !== undefined) throw new Error(missing);
  const environment = { HOLDFAST_WAITING_MACHINES: "0", HOLDFAST_WAITING_MACHINES_MAX: "0" };
  const platform = await startPlatform({ environment, flags: ["--provider", provider] });
  try {
    const services = createServices(platform);
    const nodeMs: number[] = [];
    // The first round creates files that all later ones find.
    for (let round = 0; round <= rounds; round += 1) {
      const { id } = await services.create(`round-${round}`);
      await services.settled(id, "Running", 300_000);
      await services.delete(id);
      if (round > 0) nodeMs.push(startOfNodeMs());
      // Shared parts of machines are prepared while no machine is requested.
      else await sleep(Number(values["rest-seconds"]) * 1_000);
    }
    const launches = launchesIn(join(platform.directory, "log", "controller.log")).slice(-rounds);
    if (launches.length < rounds) throw new Error(`the log has ${launches.length} launches of ${rounds}`);
    print(`${provider}: order to start, to the agent's stream, median`, ms(median(launches)), "<= 1 s");
    print("  smallest and largest", `${ms(Math.min(...launches))} ${ms(Math.max(...launches))}`);
    print("  start and end of one Node beside it, median", ms(median(nodeMs)));
    print("  in starts of Node", times(median(launches) / median(nodeMs)));
  } finally {
    await platform.remove();
  }
}

function startOfNodeMs(): number {
  const startedAt = performance.now();
  spawnSync(process.execPath, ["-e", "0"]);
  return performance.now() - startedAt;
}

/** Durations in milliseconds, in order. */
function launchesIn(log: string): number[] {
  const lines = readFileSync(log, "utf8").split("\n").flatMap(parsed);
  const ordered = new Map<string, number>();
  const launches: number[] = [];
  for (const { time, msg, machine = "", event } of lines) {
    const at = new Date(time ?? 0).getTime();
    if (msg === "machine changed" && event === "startOrdered") ordered.set(machine, at);
    const since = ordered.get(machine);
    if (msg !== "agent stream open" || since === undefined) continue;
    launches.push(at - since);
    ordered.delete(machine);
  }
  return launches;
}

function parsed(line: string): LogLine[] {
  try {
    return [JSON.parse(line) as LogLine];
  } catch {
    // Not a line of the controller.
    return [];
  }
}

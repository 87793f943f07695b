import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { incusMissing } from "@holdfast/testing/machines/incus-machines.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, type Services } from "@holdfast/testing/platform/services.ts";
import { median, ms, print, ratios, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// POST to the first SELECT 1 over TLS by name: an Incus machine against one of the process provider, alternating.
const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "10" },
    /** Size of the warm pool; 0 creates each machine on request. */
    waiting: { type: "string", default: "0" },
    /** Rest between rounds, so that the next warm-pool machine is ready. */
    "rest-seconds": { type: "string", default: "0" },
  },
});
const rounds = Number(values.rounds);

const missing = await incusMissing();
if (missing !== undefined) throw new Error(missing);
printHost();
const environment = {
  HOLDFAST_WAITING_MACHINES: values.waiting,
  HOLDFAST_WAITING_MACHINES_MAX: values.waiting,
};
const platforms: { readonly services: Services; readonly platform: Platform; readonly wallsMs: number[] }[] = [];
try {
  for (const provider of ["process", "incus"]) {
    const platform = await startPlatform({ environment, flags: ["--provider", provider] });
    platforms.push({ platform, services: createServices(platform), wallsMs: [] });
  }
  // The first of each creates files that all later ones find.
  for (let round = 0; round <= rounds; round += 1) {
    await sleep(Number(values["rest-seconds"]) * 1_000);
    for (const each of platforms) {
      const wallMs = await provision(each, `round-${round}`);
      if (round > 0) each.wallsMs.push(wallMs);
    }
  }
  const [ofProcess = [], ofIncus = []] = platforms.map(({ wallsMs }) => wallsMs);
  print("process, POST to first row, median", ms(median(ofProcess)));
  print("incus, POST to first row, median", ms(median(ofIncus)));
  const { median: ratio, min, max } = ratios(ofIncus, ofProcess);
  print("incus to process, median of rounds", times(ratio), "<= 2x");
  print("  smallest and largest", `${times(min)} ${times(max)}`);
} finally {
  for (const { platform } of platforms) await platform.remove();
}

async function provision(
  { services, platform }: { readonly services: Services; readonly platform: Platform },
  name: string,
): Promise<number> {
  const startedAt = performance.now();
  const { id } = await services.create(name);
  await services.settled(id, "Running", 300_000);
  const { connection, password } = await services.open(id);
  const client = await openPostgresql(platform, connection, { password });
  await client.query("SELECT 1");
  const wallMs = performance.now() - startedAt;
  await client.end();
  await services.delete(id);
  return wallMs;
}

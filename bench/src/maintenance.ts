import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createChangingImages } from "@holdfast/testing/machines/changing-images.ts";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import type { OperationJson } from "@holdfast/testing/api/service-json.ts";
import { createServices, expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { median, ms, percentile, print, ratios, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// Time without connections for clients of one PostgreSQL while its image is replaced, alternating with a restart of its
// engine.
const { values } = parseArgs({ options: { rounds: { type: "string", default: "10" } } });

/** One round of a client that repeatedly connects, queries and disconnects. */
interface Round {
  /** From the last response before to the first one after. */
  readonly outageMs: number;
  /** From the request to the end of the operation. */
  readonly durationMs: number;
}

printHost();
const images = createChangingImages({ looksOlder: false });
const platform = await startPlatform({ environment: { HOLDFAST_CACHE: images.cache } });
const services = createServices(platform);
try {
  const running = await services.createRunning("measured");
  const { id } = running.service;
  const replacements: Round[] = [];
  const restarts: Round[] = [];
  for (let round = 0; round < Number(values.rounds); round += 1) {
    const image = round % 2 === 0 ? images.valid : images.first;
    await images.choose(image);
    await waitUntil("it is pending", async () => {
      const { json } = await platform.rest.get<{ pending_updates: { id: string }[] }>(`/managed-services/${id}`);
      return json.pending_updates.some((update) => update.id === image);
    });
    replacements.push(await measured(running, `/managed-services/${id}/maintenance/apply`));
    restarts.push(await measured(running, `/managed-services/${id}/restart`));
  }
  show("image replaced", replacements);
  show("engine restarted", restarts);
  const outagesOf = (rounds: readonly Round[]) => rounds.map(({ outageMs }) => outageMs);
  const ratio = ratios(outagesOf(replacements), outagesOf(restarts));
  print("replaced to restarted, outage", `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`);
} finally {
  await platform.remove();
  images.close();
}

async function measured({ service, connection, password }: RunningService, path: string): Promise<Round> {
  const answered: number[] = [];
  let finished = false;
  async function ask(): Promise<void> {
    const client = await openPostgresql(platform, connection, { password });
    await client.query("SELECT 1").finally(() => void client.end().catch(() => undefined));
  }
  const asking = (async () => {
    while (!finished) {
      // The client gives up a connection that the engine left half open.
      await Promise.race([ask().then(() => answered.push(performance.now())), sleep(1_000)]).catch(() => undefined);
      await sleep(20);
    }
  })();
  await waitUntil("the client sends queries", () => answered.length > 3);
  const startedAt = performance.now();
  expectStatus(await platform.rest.post<OperationJson>(path), 202);
  await services.settled(service.id, "Running", 120_000);
  const durationMs = performance.now() - startedAt;
  const [newest] = await services.operations(service.id);
  if (newest?.status !== "completed") throw new Error(`the operation ${newest?.status}: ${newest?.error?.message}`);
  const seen = answered.length;
  await waitUntil("the client sends queries again", () => answered.length > seen + 3);
  finished = true;
  await asking;
  return { outageMs: Math.max(...answered.map((at, index) => at - (answered[index - 1] ?? at))), durationMs };
}

function show(name: string, rounds: readonly Round[]): void {
  const outages = rounds.map(({ outageMs }) => outageMs);
  print(`${name}: outage p50 / max`, `${ms(median(outages))} / ${ms(percentile(outages, 1))}`);
  print(`${name}: operation p50`, ms(median(rounds.map(({ durationMs }) => durationMs))));
}

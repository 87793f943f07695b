import { parseArgs } from "node:util";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { median, print, ratios } from "./support/figures.ts";
import { cpuMsOf, printHost } from "./support/host.ts";
import { pin, serverCore } from "./support/peer-process.ts";
import { load } from "./support/wrk.ts";

// Cost of the callers' rate limits for a GET of one object: the same requests with and without limits.
const { values } = parseArgs({
  options: { pairs: { type: "string", default: "9" }, seconds: { type: "string", default: "3" } },
});

/** Never reached here; 0 disables a limit. */
const rates = (of: string) => ({ HOLDFAST_RATE_READS: of, HOLDFAST_RATE_CHANGES: of, HOLDFAST_RATE_SOURCE: of });

printHost();
const platforms = {
  paced: await startPlatform({ environment: rates("1000000") }),
  free: await startPlatform({ environment: rates("0") }),
};
try {
  const paths = { paced: await webhookOf(platforms.paced), free: await webhookOf(platforms.free) };
  const perSecond = { paced: [] as number[], free: [] as number[] };
  const cpuUs = { paced: [] as number[], free: [] as number[] };
  // The first round is a warm-up; the order alternates.
  for (let pair = 0; pair <= Number(values.pairs); pair += 1) {
    for (const arm of pair % 2 === 0 ? (["paced", "free"] as const) : (["free", "paced"] as const)) {
      const { admin, owner, processes } = platforms[arm];
      const [controller = 0] = processes().controllers;
      pin(controller, serverCore);
      const before = cpuMsOf(controller);
      const url = `${admin.base_url}${paths[arm]}`;
      const done = await load(url, { authorization: owner }, 32, Number(values.seconds));
      if (pair === 0) continue;
      perSecond[arm].push(done.perSecond);
      cpuUs[arm].push(((cpuMsOf(controller) - before) * 1_000) / done.requests);
    }
  }
  for (const arm of ["free", "paced"] as const)
    print(`${arm}, median`, `${median(perSecond[arm]).toFixed(0)}/s, ${median(cpuUs[arm]).toFixed(0)} us CPU each`);
  const share = (ratio: number) => `${((1 - ratio) * 100).toFixed(1)}%`;
  const lost = ratios(perSecond.paced, perSecond.free);
  print(
    "requests a second lost (from - to)",
    `${share(lost.median)} (${share(lost.max)} - ${share(lost.min)})`,
    "<= 3%",
  );
  print("CPU of a request added, median", share(ratios(cpuUs.free, cpuUs.paced).median), "<= 3%");
} finally {
  await Promise.all(Object.values(platforms).map((each) => each.remove()));
}

async function webhookOf({ rest }: Platform): Promise<string> {
  const webhook = await waitUntil("a webhook is made", async () => {
    const { status, json } = await rest.post<{ id: string }>("/webhooks", { url: "https://1.1.1.1/" });
    return status === 201 && json;
  });
  return `/webhooks/${webhook.id}`;
}

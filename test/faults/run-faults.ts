import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { crashesOf } from "@holdfast/testing/platform/platform-logs.ts";
import { createRandom } from "@holdfast/testing/random.ts";
import { createServices, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { flushOnWrite, writeRows, writeValues } from "./acknowledged-writer.ts";
import { createRequestLog } from "./requested-services.ts";
import { sendRequestsUntil } from "./random-requests.ts";
import { checkRequested } from "./check-requested.ts";
import { killAtRandom } from "./killer.ts";

export interface FaultRun {
  /** One seed always sends the same requests and picks the same victims; the outcome also depends on timing. */
  readonly seed: number;
  readonly kills: number;
  readonly log: (line: string) => void;
}

export interface FaultResult {
  readonly kills: Readonly<Record<string, number>>;
  readonly services: number;
  readonly rows: number;
  readonly values: number;
}

/**
 * Kills random processes while services are requested and rows are written; throws when the final state is not as
 * requested.
 */
export async function runFaults(platform: Platform, { seed, kills, log }: FaultRun): Promise<FaultResult> {
  const random = createRandom(seed);
  const requests = createRequestLog();
  const services = createServices(platform);
  const ledger = await services.createRunning("ledger");
  const cache = await services.createRunning("ledger-cache", { database_type: "valkey", parameters: flushOnWrite });
  for (const written of [ledger, cache]) requests.services.push(requestOf(written));

  const stop = new AbortController();
  const rows = await writeRows(platform, ledger, stop.signal);
  const values = writeValues(platform, cache, stop.signal);
  const requesters = ["ada", "bob"].map((name) =>
    sendRequestsUntil({ platform, requests, name, random: random.fork(), signal: stop.signal, log }),
  );
  // A failed requester ends the run immediately.
  const failed = Promise.all(requesters).then(() => new Promise<never>(() => undefined));
  let counts: Record<string, number>;
  try {
    counts = await Promise.race([killAtRandom(platform, random.fork(), { kills, log }), failed]);
  } finally {
    stop.abort();
  }
  await Promise.all([...requesters, rows.done, values.done]);
  log("all requests are sent; waiting for their results");

  await waitUntil("the API answers", async () => (await platform.rest.get("/catalog")).status === 200);
  await checkRequested(platform, requests);
  for (const [what, writer] of Object.entries({ rows, values })) {
    const missing = await writer.missing();
    if (missing.length > 0)
      throw new Error(`${missing.length} acknowledged ${what} are lost, such as ${missing.slice(0, 10)}`);
  }
  const internal = platform.errorBodies.filter((body) => body.includes('"status":500'));
  if (internal.length > 0) throw new Error(`the API answered 500 ${internal.length} times, such as ${internal[0]}`);
  const crashes = crashesOf(platform.directory);
  if (crashes.length > 0) throw new Error(`${crashes.length} crashes, such as:\n${crashes[0]}`);
  return { kills: counts, services: requests.services.length, rows: rows.acknowledged, values: values.acknowledged };
}

function requestOf({ service }: RunningService) {
  const { id, name, hostname, tags, allowed_cidrs: allowedCidrs } = service;
  const engine = service.database_type === "valkey" ? ("valkey" as const) : ("postgresql" as const);
  const nodeIds = service.nodes.map((node) => node.id);
  return {
    id,
    name,
    engine,
    hostname,
    nodeIds,
    desired: "Running" as const,
    tags,
    allowedCidrs,
    users: new Set<string>(),
  };
}

import type { Platform } from "../support/platform/platform.ts";
import { crashesOf } from "../support/platform/platform-logs.ts";
import { createRandom } from "../support/random.ts";
import { createServices, type RunningService } from "../support/platform/services.ts";
import { waitUntil } from "../support/wait-until.ts";
import { flushedAtOnce, writeRows, writeValues } from "./acknowledged-writer.ts";
import { createAsked } from "./asked-services.ts";
import { askUntil } from "./asker.ts";
import { checkAsked } from "./check-asked.ts";
import { killAtRandom } from "./killer.ts";

export interface FaultRun {
  /** The same seed asks for the same things and picks the same victims; what they meet depends on time. */
  readonly seed: number;
  readonly kills: number;
  readonly say: (line: string) => void;
}

export interface FaultResult {
  readonly kills: Readonly<Record<string, number>>;
  readonly services: number;
  readonly rows: number;
  readonly values: number;
}

/** Kills at random while services are asked for and rows are written; throws when anything in the end is not as asked. */
export async function runFaults(platform: Platform, { seed, kills, say }: FaultRun): Promise<FaultResult> {
  const random = createRandom(seed);
  const asked = createAsked();
  const services = createServices(platform);
  const ledger = await services.createRunning("ledger");
  const cache = await services.createRunning("ledger-cache", { database_type: "valkey", parameters: flushedAtOnce });
  for (const written of [ledger, cache]) asked.services.push(askedOf(written));

  const stop = new AbortController();
  const rows = await writeRows(platform, ledger, stop.signal);
  const values = writeValues(platform, cache, stop.signal);
  const askers = ["ada", "bob"].map((name) =>
    askUntil({ platform, asked, name, random: random.fork(), signal: stop.signal, say }),
  );
  // An asker that fails ends the run at once.
  const failed = Promise.all(askers).then(() => new Promise<never>(() => undefined));
  let counts: Record<string, number>;
  try {
    counts = await Promise.race([killAtRandom(platform, random.fork(), { kills, say }), failed]);
  } finally {
    stop.abort();
  }
  await Promise.all([...askers, rows.done, values.done]);
  say("all is asked for; waiting until it is so");

  await waitUntil("the API answers", async () => (await platform.rest.get("/catalog")).status === 200);
  await checkAsked(platform, asked);
  for (const [what, writer] of Object.entries({ rows, values })) {
    const missing = await writer.missing();
    if (missing.length > 0)
      throw new Error(`${missing.length} acknowledged ${what} are lost, such as ${missing.slice(0, 10)}`);
  }
  const internal = platform.errorBodies.filter((body) => body.includes('"status":500'));
  if (internal.length > 0) throw new Error(`the API answered 500 ${internal.length} times, such as ${internal[0]}`);
  const crashes = crashesOf(platform.directory);
  if (crashes.length > 0) throw new Error(`${crashes.length} crashes, such as:\n${crashes[0]}`);
  return { kills: counts, services: asked.services.length, rows: rows.acknowledged, values: values.acknowledged };
}

function askedOf({ service }: RunningService) {
  const { id, name, hostname, tags, allowed_cidrs: allowedCidrs } = service;
  const engine = service.database_type === "valkey" ? ("valkey" as const) : ("postgresql" as const);
  const nodeIds = service.nodes.map((node) => node.id);
  return {
    id,
    name,
    engine,
    hostname,
    nodeIds,
    wanted: "Running" as const,
    tags,
    allowedCidrs,
    users: new Set<string>(),
  };
}

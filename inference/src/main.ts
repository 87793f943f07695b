import { randomUUID } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createClientAddresses } from "@holdfast/common/client-address.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { dataPlanes } from "@holdfast/common/data-planes.ts";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import { createLog } from "@holdfast/common/log.ts";
import { serveMetrics } from "@holdfast/common/metrics-listener.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { follow } from "@holdfast/feed/follow.ts";
import { readIdentity, untilIdentity, watchIdentity } from "@holdfast/feed/identity-directory.ts";
import { createApiServer } from "@holdfast/https/server.ts";
import { createDrains } from "./call/drains.ts";
import { serveCall } from "./call/serve-call.ts";
import { inferenceSettings } from "./config.ts";
import { createConfiguration } from "./configuration/configuration.ts";
import { createProxyEgress } from "./egress.ts";
import { createControllerFeed } from "./feed/controller-feed.ts";
import { createAccounting } from "./hold/accounting.ts";
import { createHoldBook } from "./hold/hold-book.ts";
import { createHandler } from "./http/handler.ts";
import { createBodyRoom } from "./http/read-body.ts";
import { openJournal } from "./journal/journal.ts";
import { createMetrics } from "./metrics.ts";
import { createSealedFile, sealingKey } from "./sealed-file.ts";

const config = readConfig(inferenceSettings, process.env);
const log = createLog("inference");
watchProcessFaults({ role: "server", note: log.error, monotonicMs: systemClock.monotonicMs });
const { now, monotonicMs } = systemClock;
const { directory, identityDirectory, installationId } = config;
/** Streams get so long to end; the rest is for what they used. */
const graceMs = dataPlanes.inference.graceMs - 10_000;
const settleEveryMs = 300;

const stopping = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.abort());
/** Calls have ended, and controllers were told. */
const over = new AbortController();

await mkdir(directory, { recursive: true, mode: 0o700 });
const kept = createSealedFile(join(directory, "configuration"), await sealingKey(config.keyFile));
const configuration = createConfiguration(await kept.read());
const journal = openJournal(directory, { now, log });
const book = createHoldBook(journal.state, {
  append: journal.append,
  now,
  rateOf: (keyId) => configuration.key(keyId)?.rateLimitRpm,
});
const accounting = createAccounting({ book, journal, now, newId: randomUUID });
const drains = createDrains();
let keeping = Promise.resolve();
let aloneSinceMs = monotonicMs();
const feed = createControllerFeed({
  processId: await processId(),
  listens: config.listen,
  configuration,
  book,
  journal,
  onConfigured: takeConfiguration,
  log,
});
const metrics = createMetrics({
  underWay: () => accounting.underWay,
  drains: () => drains.count,
  journalBytes: () => journal.bytes,
  isConnected: () => feed.isConnected,
});
const egress = createProxyEgress(config.allowEgress, config.listen, configuration);
const handler = createHandler({
  configuration,
  accounting,
  book,
  room: createBodyRoom(),
  metrics,
  serve: (routed, client) => serveCall(routed, client, { egress, drains, metrics }),
  mayAdmit: () => feed.isConnected || monotonicMs() - aloneSinceMs < config.aloneS * 1_000,
  now,
  log,
});
const settling = setInterval(() => {
  if (feed.isConnected) aloneSinceMs = monotonicMs();
  feed.sendSettlements();
}, settleEveryMs);
const served = config.metrics === "" ? undefined : await serveMetrics(config.metrics, metrics);
const following = follow(
  feed,
  {
    installationId,
    // Those that a controller told of, and those that are configured for the time when all of them have moved.
    controllers: () => [...new Set([...configuration.controllers, ...config.controllers])],
    identityDirectory,
    random: Math.random,
    log,
  },
  over.signal,
);
await (config.plain === "yes" ? servePlainly() : serve());
await Promise.race([untilSettled(), delay(2_000)]);
clearInterval(settling);
over.abort();
await following;
served?.close();
await egress.close();
await journal.close();
log.info("inference stopped", {});
process.exit(0);

async function serve(): Promise<void> {
  let identity = await untilIdentity(identityDirectory, stopping.signal);
  if (identity === undefined) return;
  const clients = createClientAddresses(config);
  const server = createApiServer({ handler, log, key: identity.key, cert: identity.certificate, clients });
  const options = { reusePort: config.sharesPort === "yes" };
  for (const { host, port } of endpointsOf(config.listen)) await server.listen(port, host, options);
  log.info("inference ready", { listen: config.listen });
  const takeNew = async () => {
    try {
      const next = await readIdentity(identityDirectory);
      if (next === undefined || next.certificate === identity?.certificate) return;
      // Key and certificate are written one after the other: a pair that does not fit is looked at again.
      server.renew(next.key, next.certificate);
      identity = next;
      log.info("certificate taken", {});
    } catch (error) {
      log.warn("certificate not taken", { error });
    }
  };
  await watchIdentity(identityDirectory, takeNew, stopping.signal);
  await server.close(graceMs);
}

/** Without TLS and its limits: for measurements on one host. */
async function servePlainly(): Promise<void> {
  const server = createServer(handler);
  const [at] = endpointsOf(config.listen);
  await listenAt(server, at);
  log.info("inference ready", { listen: config.listen });
  await new Promise((resolve) => stopping.signal.addEventListener("abort", resolve, { once: true }));
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

/** Of the directory, and kept with it. */
async function processId(): Promise<string> {
  const file = join(directory, "process-id");
  const there = await readFile(file, "utf8").catch(() => "");
  if (there !== "") return there.trim();
  const made = randomUUID();
  await writeFile(file, `${made}\n`, { mode: 0o600 });
  return made;
}

function takeConfiguration(): void {
  book.configured();
  keeping = keeping
    .then(() => kept.write(configuration.snapshot()))
    .catch((error: unknown) => log.error("configuration not written", { error }));
}

/** Controllers have all that calls used. */
async function untilSettled(): Promise<void> {
  while (feed.isConnected && (journal.state.unsent.length > 0 || journal.state.batches.length > 0)) {
    feed.sendSettlements();
    await delay(20);
  }
}

/**
 * A process of the inference proxy. The feed brings configuration and quota leases from a controller and sends usage
 * back. A call passes the handler (key, rate, body), `routeCall` (provider and price) and `Accounting` (reservation in
 * the journal, against quota leases); then `serveCall` forwards it to the provider and settles it by its usage.
 * Configuration and journal are on disk, so the process starts and serves without controllers.
 */
import { randomUUID } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createClientAddresses } from "@holdfast/common/client-address.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { createMutex } from "@holdfast/common/concurrency/mutex.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import { createLog } from "@holdfast/common/log.ts";
import { serveMetrics } from "@holdfast/common/metrics-listener.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { follow } from "@holdfast/feed/follow.ts";
import { readIdentity, waitForIdentity, watchIdentity } from "@holdfast/feed/identity-directory.ts";
import { createApiServer } from "@holdfast/https/server.ts";
import { createAbandonedCalls } from "./call/abandoned-calls.ts";
import { serveCall } from "./call/serve-call.ts";
import { inferenceSettings } from "./config.ts";
import { inferencePlane } from "./data-plane.ts";
import { createConfiguration } from "./configuration/configuration.ts";
import { createProxyEgress } from "./egress.ts";
import { createControllerFeed } from "./feed/controller-feed.ts";
import { createAccounting } from "./quota-lease/accounting.ts";
import { createQuotaLeases } from "./quota-lease/quota-leases.ts";
import { createHandler } from "./http/handler.ts";
import { createBodyBudget } from "./http/read-body.ts";
import { openUsageJournal } from "./journal/journal.ts";
import { createMetrics } from "./metrics.ts";
import { createSealedFile, sealingKey } from "./sealed-file.ts";

const config = readConfig(inferenceSettings, process.env);
const log = createLog("inference");
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: systemClock.monotonicMs });
const { now, monotonicMs } = systemClock;
const { directory, identityDirectory, installationId } = config;
/** Time for streams to end; the remaining 10 s are for their settlements. */
const graceMs = inferencePlane.graceMs - 10_000;
const settleIntervalMs = 300;

const stopping = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.abort());
/** Aborted when all calls have ended and their usage was sent. */
const shutdown = new AbortController();

await mkdir(directory, { recursive: true, mode: 0o700 });
const configurationFile = createSealedFile(join(directory, "configuration"), await sealingKey(config.keyFile));
const configuration = createConfiguration(await configurationFile.read());
const journal = openUsageJournal(directory, { now, log });
const quotaLeases = createQuotaLeases(journal.state, {
  append: journal.append,
  now,
  rateOf: (keyId) => configuration.key(keyId)?.rateLimitRpm,
});
const accounting = createAccounting({ quotaLeases, journal, now, newId: randomUUID });
const abandonedCalls = createAbandonedCalls();
const writing = createMutex();
let connectedAtMs = monotonicMs();
const feed = createControllerFeed({
  processId: await processId(),
  listeners: config.listen,
  configuration,
  quotaLeases,
  journal,
  onConfigured: storeConfiguration,
  log,
});
const metrics = createMetrics({
  inFlight: () => accounting.inFlight,
  abandonedCalls: () => abandonedCalls.count,
  journalBytes: () => journal.bytes,
  isConnected: () => feed.isConnected,
});
const egress = createProxyEgress(config.allowEgress, config.listen, configuration);
const handler = createHandler({
  configuration,
  accounting,
  quotaLeases,
  bodyBudget: createBodyBudget(),
  metrics,
  serve: (routed, client) => serveCall(routed, client, { egress, abandonedCalls, metrics, log }),
  mayAdmit: () => feed.isConnected || monotonicMs() - connectedAtMs < config.maxDisconnectedS * 1_000,
  now,
  log,
});
const settling = setInterval(() => {
  if (feed.isConnected) connectedAtMs = monotonicMs();
  feed.sendSettlements();
}, settleIntervalMs);
const metricsServer = config.metrics === "" ? undefined : await serveMetrics(config.metrics, metrics);
const following = follow(
  feed,
  {
    installationId,
    // Addresses from the feed, and configured ones in case all controllers have moved.
    controllers: () => [...new Set([...configuration.controllers, ...config.controllers])],
    identityDirectory,
    random: Math.random,
    log,
  },
  shutdown.signal,
);
await (config.plain === "yes" ? servePlainHttp() : serve());
await Promise.race([untilSettled(), delay(2_000)]);
clearInterval(settling);
shutdown.abort();
await following;
metricsServer?.close();
await egress.close();
await journal.close();
log.info("inference stopped", {});
process.exit(0);

async function serve(): Promise<void> {
  let identity = await waitForIdentity(identityDirectory, stopping.signal);
  if (identity === undefined) return;
  const clients = createClientAddresses(config);
  const server = createApiServer({ handler, log, key: identity.key, cert: identity.certificate, clients });
  const options = { reusePort: config.sharesPort === "yes" };
  for (const { host, port } of endpointsOf(config.listen)) await server.listen(port, host, options);
  log.info("inference ready", { listen: config.listen });
  const reloadIdentity = async () => {
    try {
      const next = await readIdentity(identityDirectory);
      if (next === undefined || next.certificate === identity?.certificate) return;
      // Key and certificate are two files: an inconsistent pair is read again after the next change.
      server.renew(next.key, next.certificate);
      identity = next;
      log.info("certificate reloaded", {});
    } catch (error) {
      log.warn("certificate not reloaded", { error });
    }
  };
  await watchIdentity(identityDirectory, reloadIdentity, stopping.signal);
  await server.close(graceMs);
}

/** Plain HTTP without limits, for measurements on one host. */
async function servePlainHttp(): Promise<void> {
  const server = createServer(handler);
  const [at] = endpointsOf(config.listen);
  await listenAt(server, at);
  log.info("inference ready", { listen: config.listen });
  await new Promise((resolve) => stopping.signal.addEventListener("abort", resolve, { once: true }));
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

/** Id of the process, stored in its directory. */
async function processId(): Promise<string> {
  const file = join(directory, "process-id");
  const stored = await readFile(file, "utf8").catch(() => "");
  if (stored !== "") return stored.trim();
  const created = randomUUID();
  await writeFile(file, `${created}\n`, { mode: 0o600 });
  return created;
}

function storeConfiguration(): void {
  quotaLeases.configurationChanged();
  writing(() => configurationFile.write(configuration.snapshot())).catch((error: unknown) =>
    log.error("configuration not written", { error }),
  );
}

/** Waits until the controllers have confirmed all settlements. */
async function untilSettled(): Promise<void> {
  while (feed.isConnected && (journal.state.unsent.length > 0 || journal.state.batches.length > 0)) {
    feed.sendSettlements();
    await delay(20);
  }
}

import { createClientAddresses } from "@holdfast/common/client-address.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { createLog } from "@holdfast/common/log.ts";
import { serveMetrics } from "@holdfast/common/metrics-listener.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { follow } from "@holdfast/feed/follow.ts";
import { openHostKey } from "@holdfast/feed/host-key.ts";
import { readIdentity, waitForIdentity, watchIdentity } from "@holdfast/feed/identity-directory.ts";
import { createAppFeed } from "./app-feed.ts";
import { issuerSettings } from "./config.ts";
import { startIssuerServer } from "./issuer-server.ts";
import { createMetrics } from "./metrics.ts";
import { openStateFile } from "./state-file.ts";

const config = readConfig(issuerSettings, process.env);
const log = createLog("issuer");
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: systemClock.monotonicMs });
const { directory, identityDirectory, installationId, listen, rateSource } = config;
const clients = createClientAddresses(config);

const stopping = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.abort());

const identity = await waitForIdentity(identityDirectory, stopping.signal);
if (identity !== undefined) {
  const file = await openStateFile(directory);
  const { privateKey: hostKey, request: certificateRequest } = await openHostKey(directory);
  const { key, certificate, authorities: trust } = identity;
  const metrics = createMetrics({ apps: () => server.apps, isConnected: () => feed.isConnected });
  const server = await startIssuerServer({
    listen,
    clients,
    rateSource,
    key,
    certificate,
    hostKey,
    trust,
    reportMail: (report) => feed.reportMail(report),
    metrics,
    clock: systemClock,
    log,
  });
  const feed = createAppFeed({ server, file, certificateRequest, log });
  const metricsServer = config.metrics === "" ? undefined : await serveMetrics(config.metrics, metrics);
  await feed.restore();
  log.info("issuer ready", { listen });
  const trustUpdates = watchIdentity(
    identityDirectory,
    async () => {
      const next = await readIdentity(identityDirectory).catch(() => undefined);
      if (next !== undefined) server.setTrust(next.authorities);
    },
    stopping.signal,
  );
  await follow(
    feed,
    {
      installationId,
      // Addresses from the feed, and configured ones in case all controllers have moved.
      controllers: () => [...new Set([...feed.controllers, ...config.controllers])],
      identityDirectory,
      random: Math.random,
      log,
    },
    stopping.signal,
  );
  metricsServer?.close();
  await Promise.all([server.close(), feed.flushed(), trustUpdates]);
}
log.info("issuer stopped", {});

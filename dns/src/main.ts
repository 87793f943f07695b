import { isIP } from "node:net";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { type Endpoint, endpointsOf } from "@holdfast/common/endpoint.ts";
import { createLog } from "@holdfast/common/log.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { follow } from "@holdfast/feed/follow.ts";
import { dnsSettings } from "./config.ts";
import { startDnsServer } from "./dns-server.ts";
import { zoneFeed } from "./zone-feed.ts";

const config = readConfig(dnsSettings, process.env);
const log = createLog("dns");
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: systemClock.monotonicMs });
const [at, ...alsoListen] = endpointsOf(config.listen);
const isSpecific = ({ host }: Endpoint) => isIP(host) !== 0 && host !== "0.0.0.0" && host !== "::";
const listensOn = [at, ...alsoListen].filter(isSpecific).map(({ host }) => host);
const { directory, queriesPerSecond, installationId, controllers, identityDirectory } = config;

const server = await startDnsServer({
  ...at,
  alsoListen,
  ifFree: config.listenForResolvers.length === 0 ? [] : endpointsOf(config.listenForResolvers),
  directory,
  nameServerAddresses: config.nameServerAddresses.length > 0 ? config.nameServerAddresses : listensOn,
  queriesPerSecond,
  monotonicMs: systemClock.monotonicMs,
  log,
});
const { origin, revision } = server.zone;
log.info("dns server ready", { addresses: config.listen, origin, revision: revision.toString() });

const stopping = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.abort());
await follow(
  zoneFeed(server, log),
  {
    installationId,
    // Addresses from the feed, and configured ones in case all controllers have moved.
    controllers: () => [...new Set([...server.zone.controllers, ...controllers])],
    identityDirectory,
    random: Math.random,
    log,
  },
  stopping.signal,
);
await server.close();
log.info("dns server stopped");

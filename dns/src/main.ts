import { isIP } from "node:net";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { type Endpoint, endpointsOf } from "@holdfast/common/endpoint.ts";
import { createLog } from "@holdfast/common/log.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { follow } from "@holdfast/feed/follow.ts";
import { dnsSettings } from "./config.ts";
import { startDnsServer } from "./dns-server.ts";
import { create } from "@bufbuild/protobuf";
import { reportedListeners } from "@holdfast/common/open-listeners.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Feed } from "@holdfast/feed/follow.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import {
  type FollowRequest,
  FollowRequestSchema,
  type ZoneBatch,
  ZoneService,
} from "@holdfast/proto/holdfast/dns/v1/zone_pb.ts";
import type { DnsServer } from "./dns-server.ts";

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

/** Feed of a DNS server: the full zone, then its changes. It acknowledges the served revision. */
function zoneFeed({ apply, zone }: DnsServer, log: Log): Feed<FollowRequest, ZoneBatch> {
  const serves = (servedRevision: bigint) => create(FollowRequestSchema, { servedRevision });
  return {
    method: grpcService(ZoneService).follow,
    firstMessage: () => create(FollowRequestSchema, { servedRevision: zone.revision, listeners: reportedListeners() }),
    apply(batch, controller) {
      const served = apply(batch);
      if (batch.reset) log.info("zone received", { controller, revision: batch.revision.toString() });
      return batch.synced ? serves(served) : undefined;
    },
  };
}

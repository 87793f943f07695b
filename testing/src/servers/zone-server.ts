import { create } from "@bufbuild/protobuf";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { type DnsServer, startDnsServer } from "@holdfast/dns/dns-server.ts";
import { ZoneBatchSchema } from "@holdfast/proto/holdfast/dns/v1/zone_pb.ts";

export interface ZoneServerOptions {
  /** Listen address, at port 53; also the address of the zone's name server. */
  readonly host: string;
  readonly directory: string;
  readonly origin: string;
  readonly records: Readonly<Record<string, string>>;
}

/** Starts the platform's DNS server at port 53, with a zone that has one address for each name. */
export async function startZoneServer({ host, directory, origin, records }: ZoneServerOptions): Promise<DnsServer> {
  const server = await startDnsServer({
    host,
    port: 53,
    directory,
    nameServerAddresses: [host],
    queriesPerSecond: 5_000,
    monotonicMs: systemClock.monotonicMs,
    log: silentLog,
  });
  const sets = Object.entries(records).map(([name, address]) => ({ name, addresses: [address], ttlS: 1 }));
  server.apply(create(ZoneBatchSchema, { origin, synced: true, revision: 1n, reset: true, records: sets }));
  return server;
}

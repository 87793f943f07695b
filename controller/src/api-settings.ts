import { isIP } from "node:net";
import { proxySettings } from "@holdfast/common/client-address.ts";
import { integer, list, text, type ValuesOf } from "@holdfast/common/config.ts";
import { endpointOf } from "@holdfast/common/endpoint.ts";

const addresses = list(
  "HOLDFAST_OWN_ADDRESSES",
  "Addresses that lead to the installation's listeners and that its hosts do not have, as behind NAT, or host:port of listeners that no other setting names; URLs of users never lead there",
);

/** The API on its port. */
export const apiSettings = {
  apiListen: list("HOLDFAST_API_LISTEN", "Each host:port that serves REST and gRPC", "127.0.0.1:8443"),
  baseUrl: text("HOLDFAST_BASE_URL", "URL that clients reach the API by", "https://127.0.0.1:8443"),
  ownAddresses: {
    ...addresses,
    parse(value: string) {
      const all = addresses.parse(value);
      for (const each of all) if (isIP(each) === 0) endpointOf(each);
      return all;
    },
  },
  rateReads: integer(
    "HOLDFAST_RATE_READS",
    "Reads that one credential may make in a second on each controller, ten times as many at once; an organization has five times that; 0 for no limit",
    100,
  ),
  rateChanges: integer(
    "HOLDFAST_RATE_CHANGES",
    "Changes that one credential may ask for in a second on each controller, ten times as many at once; an organization has five times that; 0 for no limit",
    20,
  ),
  followers: integer(
    "HOLDFAST_FOLLOWERS",
    "Streams of events and logs that one credential may have at a time on each controller; an organization has five times that, and all have fifty times that",
    20,
  ),
  rateSource: integer(
    "HOLDFAST_RATE_SOURCE",
    "Requests without a credential (pages, health, reflection, setup) that one address, or /64 of IPv6, may make in a second, ten times as many at once; 0 for no limit",
    50,
  ),
  ...proxySettings,
  apiConnections: integer(
    "HOLDFAST_API_CONNECTIONS",
    "Connections to the API on each controller; past it the longest idle one of the address that has most is closed",
    8_000,
  ),
} as const;

export type ApiSettings = ValuesOf<typeof apiSettings>;

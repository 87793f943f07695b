import { join } from "node:path";
import type { DataPlane } from "@holdfast/common/data-planes.ts";

/** The DNS server in a local installation. */
export const dnsPlane: DataPlane = {
  firstPort: 8445,
  listensOnUdp: true,
  graceMs: 10_000,
  hasPublicDirectory: true,
  identityDirectory: (directory) => join(directory, "identity"),
  settings: ({ installationId, controllers, directory, advertisedAddress, resolverAddress }) => ({
    HOLDFAST_INSTALLATION_ID: installationId,
    // Name servers in the zone: clients on other machines can reach no other address.
    ...(advertisedAddress !== undefined && { HOLDFAST_DNS_ADDRESSES: advertisedAddress }),
    HOLDFAST_DNS_RESOLVER_LISTEN: `${resolverAddress}:53`,
    HOLDFAST_DNS_DIR: directory,
    HOLDFAST_CONTROLLERS: controllers,
  }),
};

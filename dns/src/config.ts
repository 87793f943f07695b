import { integer, list, text } from "@holdfast/common/config.ts";

/** Settings of the DNS server. */
export const dnsSettings = {
  installationId: text("HOLDFAST_INSTALLATION_ID", "Id of the installation"),
  listen: list("HOLDFAST_DNS_LISTEN", "Each address and port to listen on, over UDP and TCP", "127.0.0.1:5353"),
  listenForResolvers: list(
    "HOLDFAST_DNS_RESOLVER_LISTEN",
    "Addresses and ports for resolvers of this host, which query port 53 only; an address in use is logged and left out",
    "",
  ),
  directory: text("HOLDFAST_DNS_DIR", "Directory for the zone"),
  controllers: list("HOLDFAST_CONTROLLERS", "Agent listeners of the controllers, host:port, which send the zone"),
  identityDirectory: text("HOLDFAST_DNS_IDENTITY_DIR", "Directory with key.pem, cert.pem and ca.pem of this server"),
  nameServerAddresses: list(
    "HOLDFAST_DNS_ADDRESSES",
    "Addresses at which clients reach the name servers; empty: the addresses that the server listens on",
  ),
  queriesPerSecond: integer("HOLDFAST_DNS_RATE", "UDP queries that one source may send in a second", 5_000),
};

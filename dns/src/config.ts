import { integer, list, text } from "@holdfast/common/config.ts";

/** All settings of the DNS server. */
export const dnsSettings = {
  installationId: text("HOLDFAST_INSTALLATION_ID", "Id of the installation that the zone belongs to"),
  listen: list("HOLDFAST_DNS_LISTEN", "Each address and port to answer on, over UDP and TCP", "127.0.0.1:5353"),
  directory: text("HOLDFAST_DNS_DIR", "Directory that keeps the zone"),
  controllers: list("HOLDFAST_CONTROLLERS", "Agent listeners of the controllers, host:port, that the zone comes from"),
  identityDirectory: text("HOLDFAST_DNS_IDENTITY_DIR", "Directory with key.pem, cert.pem and ca.pem of this server"),
  nameServerAddresses: list(
    "HOLDFAST_DNS_ADDRESSES",
    "Addresses that clients reach the name servers by; empty: those it listens on",
  ),
  queriesPerSecond: integer("HOLDFAST_DNS_RATE", "UDP queries a second that one source may send", 5_000),
};

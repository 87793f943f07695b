import { proxySettings } from "@holdfast/common/client-address.ts";
import { integer, list, text } from "@holdfast/common/config.ts";

/** Settings of an issuer. */
export const issuerSettings = {
  installationId: text("HOLDFAST_INSTALLATION_ID", "Id of the installation"),
  listen: list("HOLDFAST_ISSUER_LISTEN", "Each address and port to serve end users on", "127.0.0.1:8451"),
  rateSource: integer(
    "HOLDFAST_ISSUER_RATE_SOURCE",
    "Requests per second without a valid token, code or secret that one address, or /64 of IPv6, may make, with a burst of ten times as many; 0 for no limit",
    50,
  ),
  ...proxySettings,
  directory: text("HOLDFAST_ISSUER_DIR", "Directory for the encrypted state of the served apps"),
  metrics: text(
    "HOLDFAST_ISSUER_METRICS",
    "Socket in the file system, or host:port, that serves /metrics; empty for none",
    "",
  ),
  controllers: list("HOLDFAST_CONTROLLERS", "Agent listeners of the controllers, host:port, which send the apps"),
  identityDirectory: text("HOLDFAST_ISSUER_IDENTITY_DIR", "Directory with key.pem, cert.pem and ca.pem of this issuer"),
};

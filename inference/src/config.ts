import { proxySettings } from "@holdfast/common/client-address.ts";
import { integer, list, text } from "@holdfast/common/config.ts";

/** Settings of an inference proxy process. */
export const inferenceSettings = {
  installationId: text("HOLDFAST_INSTALLATION_ID", "Id of the installation"),
  listen: list("HOLDFAST_INFERENCE_LISTEN", "Each host:port to listen on", "127.0.0.1:8450"),
  ...proxySettings,
  sharesPort: text(
    "HOLDFAST_INFERENCE_SHARES_PORT",
    "yes: other proxy processes on this host may listen on the same port; the kernel distributes connections",
    "",
  ),
  directory: text("HOLDFAST_INFERENCE_DIR", "Directory of the process, for its journal and configuration"),
  keyFile: text(
    "HOLDFAST_INFERENCE_KEY_FILE",
    "File with the key that encrypts the stored configuration; created if it does not exist",
  ),
  controllers: list(
    "HOLDFAST_CONTROLLERS",
    "Agent listeners of the controllers, host:port, which send the configuration",
  ),
  identityDirectory: text(
    "HOLDFAST_INFERENCE_IDENTITY_DIR",
    "Directory with key.pem, cert.pem and ca.pem of this process",
  ),
  plain: text("HOLDFAST_INFERENCE_PLAIN", "yes: plain HTTP instead of TLS, for measurements on one host", ""),
  metrics: text(
    "HOLDFAST_INFERENCE_METRICS",
    "Socket in the file system, or host:port, that serves /metrics; empty for none",
    "",
  ),
  allowEgress: list("HOLDFAST_ALLOW_EGRESS", "Non-public networks (CIDRs) to which base URLs of providers may resolve"),
  maxDisconnectedS: integer(
    "HOLDFAST_INFERENCE_ALONE_S",
    "Seconds for which the process admits calls by its quota leases while no controller is connected",
    3_600,
  ),
};

import { proxySettings } from "@holdfast/common/client-address.ts";
import { integer, list, text } from "@holdfast/common/config.ts";

/** All settings of a process of the inference proxy. */
export const inferenceSettings = {
  installationId: text("HOLDFAST_INSTALLATION_ID", "Id of the installation that it belongs to"),
  listen: list("HOLDFAST_INFERENCE_LISTEN", "Each host:port to listen on", "127.0.0.1:8450"),
  ...proxySettings,
  sharesPort: text(
    "HOLDFAST_INFERENCE_SHARES_PORT",
    "yes: other processes of the proxy on this host may listen on the same port; the kernel shares out connections",
    "",
  ),
  directory: text(
    "HOLDFAST_INFERENCE_DIR",
    "Directory of its own that keeps its journal and what it is configured with",
  ),
  keyFile: text(
    "HOLDFAST_INFERENCE_KEY_FILE",
    "File with the key that its configuration is sealed with; made if it is not there",
  ),
  controllers: list(
    "HOLDFAST_CONTROLLERS",
    "Agent listeners of the controllers, host:port, that its configuration comes from",
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
  allowEgress: list(
    "HOLDFAST_ALLOW_EGRESS",
    "Networks (CIDRs) that are not public and that base URLs of providers may lead to all the same",
  ),
  aloneS: integer(
    "HOLDFAST_INFERENCE_ALONE_S",
    "Seconds for which it goes on with what it holds while no controller answers",
    3_600,
  ),
};

import { integer, list, text } from "@holdfast/common/config.ts";

/** Settings of the ingress. */
export const ingressSettings = {
  installationId: text("HOLDFAST_INSTALLATION_ID", "Id of the installation"),
  listen: list("HOLDFAST_INGRESS_LISTEN", "Each host:port to listen on", "127.0.0.1:8453"),
  redirectListen: list(
    "HOLDFAST_INGRESS_REDIRECT_LISTEN",
    "Each host:port at which requests are redirected to HTTPS, such as 0.0.0.0:80; empty: none",
    "",
  ),
  challengesServer: text(
    "HOLDFAST_INGRESS_CHALLENGES",
    "host:port that gets the challenges of certificate authorities for hosts without an app, such as the API; empty: none",
    "",
  ),
  directory: text(
    "HOLDFAST_INGRESS_DIR",
    "Directory of the process, with the routes that it serves without controllers",
  ),
  uid: integer("HOLDFAST_INGRESS_UID", "User id of HAProxy, which no other program has"),
  imagesDir: text("HOLDFAST_IMAGES_DIR", "Directory of the node images, one of which has HAProxy"),
  connections: integer("HOLDFAST_INGRESS_CONNECTIONS", "Maximum number of connections of clients at a time", 8_000),
  controllers: list("HOLDFAST_CONTROLLERS", "Agent listeners of the controllers, host:port, which have the routes"),
  identityDirectory: text(
    "HOLDFAST_INGRESS_IDENTITY_DIR",
    "Directory with key.pem, cert.pem and ca.pem of this process; clients get this certificate",
  ),
};

import { join } from "node:path";
import type { DataPlane } from "@holdfast/common/data-planes.ts";

/** The ingress of hosted apps in a local installation. */
export const ingressPlane: DataPlane = {
  firstPort: 8453,
  listensOnUdp: false,
  graceMs: 10_000,
  programNumber: 1,
  identityDirectory: (directory) => join(directory, "identity"),
  settings: ({ listenersOn, floatingIps, challengesServer, ...host }) => ({
    HOLDFAST_INSTALLATION_ID: host.installationId,
    // Users of this host reach apps at loopback, as they call the API.
    HOLDFAST_INGRESS_LISTEN: [
      ...new Set(["127.0.0.1", ...floatingIps].flatMap((address) => listenersOn(address).split(","))),
    ].join(","),
    HOLDFAST_INGRESS_DIR: join(host.directory, "data"),
    HOLDFAST_INGRESS_UID: String(host.programUid),
    ...(challengesServer !== "" && { HOLDFAST_INGRESS_CHALLENGES: challengesServer }),
    HOLDFAST_IMAGES_DIR: host.imagesDirectory,
    HOLDFAST_CONTROLLERS: host.controllers,
  }),
};

import { join } from "node:path";
import type { DataPlane } from "@holdfast/common/data-planes.ts";

/** The ingress of hosted apps in a local installation. */
export const ingressPlane: DataPlane = {
  firstPort: 8453,
  listensOnUdp: false,
  graceMs: 10_000,
  programNumber: 1,
  identityDirectory: (directory) => join(directory, "identity"),
  settings: ({ installationId, controllers, directory, imagesDirectory, programUid, listenersOn, floatingIps }) => ({
    HOLDFAST_INSTALLATION_ID: installationId,
    // Users of this host reach apps at loopback, as they call the API.
    HOLDFAST_INGRESS_LISTEN: [
      ...new Set(["127.0.0.1", ...floatingIps].flatMap((address) => listenersOn(address).split(","))),
    ].join(","),
    HOLDFAST_INGRESS_DIR: join(directory, "data"),
    HOLDFAST_INGRESS_UID: String(programUid),
    HOLDFAST_IMAGES_DIR: imagesDirectory,
    HOLDFAST_CONTROLLERS: controllers,
  }),
};

import { join } from "node:path";
import type { DataPlane } from "@holdfast/common/data-planes.ts";

/** The issuer of apps' sign-ins in a local installation. */
export const issuerPlane: DataPlane = {
  firstPort: 8451,
  listensOnUdp: false,
  graceMs: 10_000,
  identityDirectory: (directory) => join(directory, "identity"),
  settings: ({ installationId, controllers, directory, runDirectory }) => ({
    HOLDFAST_INSTALLATION_ID: installationId,
    HOLDFAST_ISSUER_DIR: directory,
    HOLDFAST_ISSUER_METRICS: join(runDirectory, "issuer-metrics.sock"),
    HOLDFAST_CONTROLLERS: controllers,
  }),
};

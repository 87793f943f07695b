import { join } from "node:path";
import type { DataPlane } from "@holdfast/common/data-planes.ts";

/** The inference proxy in a local installation. */
export const inferencePlane: DataPlane = {
  firstPort: 8450,
  listensOnUdp: false,
  // Streams have 120 s to end; the other 10 s are for their settlements.
  graceMs: 130_000,
  identityDirectory: (directory) => join(directory, "identity"),
  settings: ({ installationId, controllers, directory, keysDirectory, runDirectory, listenersOn }) => ({
    HOLDFAST_INSTALLATION_ID: installationId,
    // Applications on this host call the proxy at loopback, as they call the API.
    HOLDFAST_INFERENCE_LISTEN: listenersOn("127.0.0.1"),
    HOLDFAST_INFERENCE_DIR: directory,
    HOLDFAST_INFERENCE_KEY_FILE: join(keysDirectory, "inference-key"),
    HOLDFAST_INFERENCE_METRICS: join(runDirectory, "inference-metrics.sock"),
    HOLDFAST_INFERENCE_SHARES_PORT: "yes",
    HOLDFAST_CONTROLLERS: controllers,
  }),
  processes: {
    countSetting: "HOLDFAST_INFERENCE_PROCESSES",
    maxCount: 16,
    settings: (number, { directory, runDirectory }) => ({
      HOLDFAST_INFERENCE_DIR: join(directory, String(number)),
      HOLDFAST_INFERENCE_METRICS: join(runDirectory, `inference-metrics-${number}.sock`),
    }),
  },
};

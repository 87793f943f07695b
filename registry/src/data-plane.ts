import { join } from "node:path";
import type { DataPlane } from "@holdfast/common/data-planes.ts";

/** The registry of images in a local installation. */
export const registryPlane: DataPlane = {
  firstPort: 8452,
  listensOnUdp: false,
  graceMs: 15_000,
  identityDirectory: (directory) => join(directory, "identity"),
  settings: ({ installationId, controllers, directory, objects, imagesDirectory, programUid, listenersOn }) => ({
    HOLDFAST_INSTALLATION_ID: installationId,
    // Users of this host push to loopback, as they call the API.
    HOLDFAST_REGISTRY_LISTEN: listenersOn("127.0.0.1"),
    HOLDFAST_REGISTRY_DIR: join(directory, "data"),
    HOLDFAST_REGISTRY_UID: String(programUid),
    HOLDFAST_IMAGES_DIR: imagesDirectory,
    HOLDFAST_OBJECTS: objects.url,
    HOLDFAST_OBJECTS_KEY_FILE: objects.credentialFile,
    HOLDFAST_CONTROLLERS: controllers,
  }),
};

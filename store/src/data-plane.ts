import type { DataPlane } from "@holdfast/common/data-planes.ts";

/** The server of the object store's directory in a local installation. It does not run if objects are in S3. */
export const storePlane: DataPlane = {
  firstPort: 8449,
  listensOnUdp: false,
  graceMs: 10_000,
  identityDirectory: (directory) => directory,
  settings: ({ objects }) => ({
    HOLDFAST_STORE_DIR: objects.directory,
    HOLDFAST_STORE_KEY_FILE: objects.keyFile,
  }),
};

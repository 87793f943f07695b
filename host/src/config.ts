import { readConfig, text } from "@holdfast/common/config.ts";
import { settings as ofControllers } from "@holdfast/controller/config.ts";

const { provider, processDir, imagesDir, loopbackBlock, publicAddresses, spares, logLevel } = ofControllers;
const { storageTiers, incusSocket, incusProject, incusPool, incusTierPools, incusAddressBlock } = ofControllers;
const { incusUrl, incusCert, incusKey, incusServerCert, incusTokenFile } = ofControllers;

/** Every setting of a host program. What its provider needs is set as it is for controllers. */
export const settings = {
  listen: text("HOLDFAST_HOST_LISTEN", "host:port that controllers dial"),
  stateDir: text("HOLDFAST_HOST_STATE_DIR", "Directory with the host's certificate; a join made it"),
  provider,
  processDir,
  imagesDir,
  loopbackBlock,
  publicAddresses,
  spares,
  storageTiers,
  incusSocket,
  incusUrl,
  incusCert,
  incusKey,
  incusServerCert,
  incusTokenFile,
  incusProject,
  incusPool,
  incusTierPools,
  incusAddressBlock,
  logLevel,
} as const;

/** Throws with all problems together. */
export function readHostConfig(environment: Readonly<Record<string, string | undefined>>) {
  return readConfig(settings, environment);
}

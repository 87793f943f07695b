import { storeName } from "./objects/signed-url.ts";

/** A process that serves clients beside the controllers and continues while they are unavailable. */
interface DataPlane {
  /** DNS names in the certificate that a local installation's controller writes for it. */
  readonly certificateNames: readonly string[];
  /** Port in the first block of ports of a local installation. */
  readonly firstPort: number;
  readonly listensOnUdp: boolean;
  /** Time in milliseconds for an orderly stop before it is killed. */
  readonly graceMs: number;
}

/**
 * One row for each data plane. Its identity kind, port, flag, setting names and child process of `npm start` derive
 * from it.
 */
export const dataPlanes = {
  dns: { certificateNames: ["localhost"], firstPort: 8445, listensOnUdp: true, graceMs: 10_000 },
  issuer: { certificateNames: ["localhost"], firstPort: 8451, listensOnUdp: false, graceMs: 10_000 },
  store: { certificateNames: [storeName], firstPort: 8449, listensOnUdp: false, graceMs: 10_000 },
  // Streams have 120 s of it to end.
  inference: { certificateNames: ["localhost"], firstPort: 8450, listensOnUdp: false, graceMs: 130_000 },
} as const satisfies Record<string, DataPlane>;

export type DataPlaneName = keyof typeof dataPlanes;

export const dataPlaneNames = Object.keys(dataPlanes) as DataPlaneName[];

/** Maps each data plane to a value. */
export function eachDataPlane<T>(valueOf: (name: DataPlaneName) => T): Record<DataPlaneName, T> {
  return Object.fromEntries(dataPlaneNames.map((name) => [name, valueOf(name)])) as Record<DataPlaneName, T>;
}

/** Name of the setting with the directory where a controller writes the data plane's identity. */
export function identityDirectorySetting(name: DataPlaneName): string {
  return `HOLDFAST_${name.toUpperCase()}_IDENTITY_DIR`;
}

import { storeName } from "./objects/signed-url.ts";

/** A process that serves clients beside the controllers, and goes on while they are away. */
interface DataPlane {
  /** Names in the certificate that a controller of a local installation leaves for it. */
  readonly certificateNames: readonly string[];
  /** Its port in the first block of local installations. */
  readonly firstPort: number;
  readonly listensOnUdp: boolean;
  /** How long it may take to end in order, before it is killed. */
  readonly graceMs: number;
}

/** One row each. The kind of its identity, its port and flag, its settings' names and its child of `npm start` follow from it. */
export const dataPlanes = {
  dns: { certificateNames: ["localhost"], firstPort: 8445, listensOnUdp: true, graceMs: 10_000 },
  issuer: { certificateNames: ["localhost"], firstPort: 8451, listensOnUdp: false, graceMs: 10_000 },
  store: { certificateNames: [storeName], firstPort: 8449, listensOnUdp: false, graceMs: 10_000 },
  // Streams have 120 s of it.
  inference: { certificateNames: ["localhost"], firstPort: 8450, listensOnUdp: false, graceMs: 130_000 },
} as const satisfies Record<string, DataPlane>;

export type DataPlaneName = keyof typeof dataPlanes;

export const dataPlaneNames = Object.keys(dataPlanes) as DataPlaneName[];

/** A value for each of them. */
export function eachDataPlane<T>(valueOf: (name: DataPlaneName) => T): Record<DataPlaneName, T> {
  return Object.fromEntries(dataPlaneNames.map((name) => [name, valueOf(name)])) as Record<DataPlaneName, T>;
}

/** The setting that names the directory in which a controller leaves its identity. */
export function identityDirectorySetting(name: DataPlaneName): string {
  return `HOLDFAST_${name.toUpperCase()}_IDENTITY_DIR`;
}

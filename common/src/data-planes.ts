import { storeName } from "./objects/signed-url.ts";

/**
 * A row for each data plane: a process that serves clients beside the controllers, and continues while they are
 * unavailable. Its identity kind and the names of its settings derive from its name. Its port, its settings and its
 * child process of `npm start` are in `src/data-plane.ts` of its package.
 */
export const dataPlanes = {
  dns: { certificateNames: ["localhost"] },
  issuer: { certificateNames: ["localhost"] },
  store: { certificateNames: [storeName] },
  inference: { certificateNames: ["localhost"] },
  registry: { certificateNames: ["localhost"] },
  ingress: { certificateNames: ["localhost"] },
} as const satisfies Record<string, { readonly certificateNames: readonly string[] }>;

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

/** A data plane's process in a local installation, declared in its package. */
export interface DataPlane {
  /** Port in the first block of ports of a local installation. */
  readonly firstPort: number;
  readonly listensOnUdp: boolean;
  /** Time in milliseconds for an orderly stop before it is killed. */
  readonly graceMs: number;
  /** Number of its program of another author among those of data planes, which gives its user; 0 by default. */
  readonly programNumber?: number;
  /** True if other users of the host may read its directory. */
  readonly hasPublicDirectory?: true;
  /** Directory of its identity, given its own directory. */
  identityDirectory(directory: string): string;
  /** Settings of its process, in addition to listener and identity directory, which they may override. */
  settings(host: DataPlaneHost): Readonly<Record<string, string>>;
  /** Additional processes that share its port; absent: none. */
  readonly processes?: {
    /** Environment variable with the number of processes; 1 by default. */
    readonly countSetting: string;
    readonly maxCount: number;
    /** Settings of the process with this number, from 2 on, that override the settings of the first process. */
    settings(number: number, host: DataPlaneHost): Readonly<Record<string, string>>;
  };
}

/** A local installation, as far as settings of data planes depend on it. */
export interface DataPlaneHost {
  readonly installationId: string;
  /** host:port at which the controllers serve feeds. */
  readonly controllers: string;
  /** The data plane's own directory. */
  readonly directory: string;
  readonly keysDirectory: string;
  readonly runDirectory: string;
  readonly objects: {
    readonly directory: string;
    /** Secret of the process that serves the directory. */
    readonly keyFile: string;
    /** URL of the store, as controllers read it. */
    readonly url: string;
    /** Credential of an S3 store, otherwise `keyFile`. */
    readonly credentialFile: string;
  };
  /** Directory of the node images. */
  readonly imagesDirectory: string;
  /** User id for a program of the data plane; no machine and no other program of the host has it. */
  readonly programUid: number;
  /** Address for other machines; undefined if they are not to reach the installation. */
  readonly advertisedAddress: string | undefined;
  /** Loopback address of the installation for the host's resolver. */
  readonly resolverAddress: string;
  /** Addresses of this host that hosted apps may have alone. */
  readonly floatingIps: readonly string[];
  /** host:port of the API's ACME client behind the ingress; empty if it listens itself. */
  readonly challengesServer: string;
  /** The data plane's port on an address of this host, and on the one for other machines. */
  listenersOn(address: string): string;
}

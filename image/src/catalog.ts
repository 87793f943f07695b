/** Debian suites of node images. Two suites provide two major versions of an engine. */
export type Suite = "trixie" | "sid";

/** A database engine, or a program of the platform itself. */
export type Program = "postgresql" | "valkey" | "etcd";

export interface Software {
  readonly program: Program;
  /** Version for users: the major version of PostgreSQL, `8.1` of Valkey. */
  readonly version: string;
  /** Directory inside the image with the programs in `bin`. */
  readonly path: string;
  /** Debian package with the program's version. */
  readonly package: string;
}

/** Packages and software of a suite's images. The manifest of an image has the full versions. */
export interface Recipe {
  readonly packages: readonly string[];
  readonly software: readonly Software[];
  /** Packages of a second suite; packages that both suites have come from the recipe's own. */
  readonly beside?: { readonly suite: Suite; readonly packages: readonly string[] };
}

/**
 * Packages of every image: namespaces, users and mounts; the first process; XFS tools; libraries of the Node binary.
 */
const base = ["util-linux", "mount", "tini", "xfsprogs", "libatomic1", "libstdc++6"];

export const recipes: Readonly<Record<Suite, Recipe>> = {
  trixie: {
    packages: [
      ...base,
      "etcd-client",
      "etcd-server",
      "haproxy",
      "pgbouncer",
      "postgresql-17",
      "postgresql-17-pgvector",
      "valkey-server",
      "valkey-tools",
    ],
    software: [
      { program: "postgresql", version: "17", path: "/usr/lib/postgresql/17", package: "postgresql-17" },
      { program: "valkey", version: "8.1", path: "/usr", package: "valkey-server" },
      { program: "etcd", version: "3.5", path: "/usr", package: "etcd-server" },
    ],
  },
  sid: {
    packages: [
      ...base,
      "haproxy",
      "pgbouncer",
      "postgresql-18",
      "postgresql-18-pgvector",
      "valkey-server",
      "valkey-tools",
    ],
    software: [
      { program: "postgresql", version: "18", path: "/usr/lib/postgresql/18", package: "postgresql-18" },
      { program: "valkey", version: "9", path: "/usr", package: "valkey-server" },
    ],
    // pg_upgrade starts the old engine on the old data; no service runs on these.
    beside: { suite: "trixie", packages: ["postgresql-17", "postgresql-17-pgvector"] },
  },
};

export const suites = Object.keys(recipes) as Suite[];

/** Suite whose image has this version of a program; undefined if none has. */
export function suiteOf(program: string, version: string): Suite | undefined {
  return suites.find((suite) => softwareOf(suite, program, version) !== undefined);
}

/** Undefined if the suite does not have it. */
export function softwareOf(suite: Suite, program: string, version: string): Software | undefined {
  return recipes[suite].software.find((entry) => entry.program === program && entry.version === version);
}

/** Requested packages of a suite's image, of both suites. */
export function packagesOf(suite: Suite): string[] {
  const { packages, beside } = recipes[suite];
  return [...packages, ...(beside?.packages ?? [])];
}

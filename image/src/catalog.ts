/** Debian suites that node images are made from. Two suites give two major versions of an engine. */
export type Suite = "trixie" | "sid";

/** A database engine, or a program of the platform itself. */
export type Program = "postgresql" | "valkey" | "etcd";

export interface Software {
  readonly program: Program;
  /** As users write it: the major version of PostgreSQL, `8.1` of Valkey. */
  readonly version: string;
  /** Directory inside the image whose `bin` has the programs. */
  readonly path: string;
  /** Debian package whose version is the program's. */
  readonly package: string;
}

/** What goes into an image of a suite. Which versions that comes to, its manifest tells. */
export interface Recipe {
  readonly packages: readonly string[];
  readonly software: readonly Software[];
  /** Packages of another suite beside them; what both suites have comes from the recipe's own. */
  readonly beside?: { readonly suite: Suite; readonly packages: readonly string[] };
}

/** In every image: namespaces, other users and mounts; the first process; the data disk's tools; what the Node binary links to. */
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
    // pg_upgrade starts the old engine over the old data: no service runs from these.
    beside: { suite: "trixie", packages: ["postgresql-17", "postgresql-17-pgvector"] },
  },
};

export const suites = Object.keys(recipes) as Suite[];

/** The suite whose image has a program in this version; undefined for a version that no image has. */
export function suiteOf(program: string, version: string): Suite | undefined {
  return suites.find((suite) => softwareOf(suite, program, version) !== undefined);
}

/** Undefined where the suite has none of it. */
export function softwareOf(suite: Suite, program: string, version: string): Software | undefined {
  return recipes[suite].software.find((entry) => entry.program === program && entry.version === version);
}

/** Every package that an image of the suite is asked for, whichever suite it comes from. */
export function packagesOf(suite: Suite): string[] {
  const { packages, beside } = recipes[suite];
  return [...packages, ...(beside?.packages ?? [])];
}

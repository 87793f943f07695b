import type { ArtifactRequest } from "./artifact.ts";

/** Debian suites of node images. Two suites provide two major versions of an engine. */
export type Suite = "trixie" | "sid";

/** A database engine, or a program of the platform itself. */
export type Program = "postgresql" | "mysql" | "valkey" | "etcd";

export interface Software {
  readonly program: Program;
  /** Version for users: the major version of PostgreSQL, `8.1` of Valkey. */
  readonly version: string;
  /** Directory inside the image with the programs in `bin`. */
  readonly path: string;
  /** Debian package, or artifact, with the program's version. */
  readonly package: string;
}

/** Contents and software of an image. Its manifest has the full versions. */
export interface Recipe {
  readonly suite: Suite;
  readonly packages: readonly string[];
  readonly software: readonly Software[];
  /** Packages of a second suite; packages that both suites have come from the recipe's own. */
  readonly beside?: { readonly suite: Suite; readonly packages: readonly string[] };
  /** Contents that no Debian package has. */
  readonly artifacts?: readonly ArtifactRequest[];
}

/** Name of a recipe, in lower-case letters: ids of its images begin with it. */
export type RecipeName = "trixie" | "sid" | "mysql";

/**
 * Packages of every image: namespaces, users and mounts; the first process; XFS tools; libraries of the Node binary.
 */
const base = ["util-linux", "mount", "tini", "xfsprogs", "libatomic1", "libstdc++6"];

/** An image is built when it is first needed. Of recipes with the same version of a program, the first has it. */
export const recipes: Readonly<Record<RecipeName, Recipe>> = {
  trixie: {
    suite: "trixie",
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
    suite: "sid",
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
  mysql: {
    suite: "sid",
    packages: [...base, "haproxy", "mysql-client", "mysql-server-core"],
    software: [{ program: "mysql", version: "9.7", path: "/usr", package: "mysql-server-core" }],
  },
};

export const recipeNames = Object.keys(recipes) as RecipeName[];

/** Recipe whose image has this version of a program; undefined if none has. */
export function recipeOf(program: string, version: string): RecipeName | undefined {
  return recipeNames.find((name) => softwareOf(name, program, version) !== undefined);
}

/** Undefined if images of the recipe do not have it. */
export function softwareOf(name: RecipeName, program: string, version: string): Software | undefined {
  return recipes[name].software.find((entry) => entry.program === program && entry.version === version);
}

/** Requested packages of an image, of both suites. */
export function packagesOf({ packages, beside }: Recipe): string[] {
  return [...packages, ...(beside?.packages ?? [])];
}

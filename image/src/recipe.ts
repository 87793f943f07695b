import type { ArtifactRequest } from "./artifact.ts";

/** Debian suites of node images. Two suites provide two major versions of an engine. */
export type Suite = "trixie" | "sid";

/** A database engine, or a program of the platform itself, in an image. */
export interface Software {
  readonly program: string;
  /** Version for users: the major version of PostgreSQL, `8.1` of Valkey. */
  readonly version: string;
  /** Directory inside the image with the programs in `bin`. */
  readonly path: string;
  /** Name of its server program, which is also the name of its process. */
  readonly executable: string;
  /** Debian package, or artifact, with the program's version. */
  readonly package: string;
}

/** Contents and software of an image. Its manifest has the full versions. */
export interface Recipe {
  readonly suite: Suite;
  readonly packages: readonly string[];
  readonly software: readonly Software[];
  /** Packages of a second suite; packages that both suites have come from the recipe's suite. */
  readonly beside?: { readonly suite: Suite; readonly packages: readonly string[] };
  /** Contents that no Debian package has. */
  readonly artifacts?: readonly ArtifactRequest[];
}

/**
 * Packages of every image: namespaces, users and mounts; the first process; XFS tools; libraries of the Node binary.
 */
export const basePackages = ["util-linux", "mount", "tini", "xfsprogs", "libatomic1", "libstdc++6"] as const;

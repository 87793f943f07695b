/** Path of an artifact in an image: below /usr/local, which Debian packages leave empty, and which programs find. */
export type ArtifactPath = `/usr/local/${string}`;

/** Content of a recipe that is not a Debian package. Its hash is verified before anything reads it. */
export type ArtifactRequest = DebRequest | GoRequest | MavenRequest | NpmRequest | PluginRequest | TextRequest;

/** A program that Debian does not have. It is built from a Go module, whose contents the sum determines. */
export interface GoProgram {
  readonly module: string;
  readonly version: string;
  /** Hash of the module's files, in the format of go.sum. */
  readonly sum: string;
  /** Package of the program in the module. */
  readonly package: string;
  /** Modules that its go.mod replaces by paths of the same repository: the replacements are dropped. */
  readonly dropReplaces?: readonly string[];
  /** Changes of its source, in this order. */
  readonly edits?: readonly SourceEdit[];
}

/** A change of a source file: a text that is in the file exactly once, and the text in its place. */
export interface SourceEdit {
  /** Path in the module. */
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

/** A program that is built from a Go module, in a tool tree outside of the image. `path` is the program's path. */
export interface GoRequest extends GoProgram {
  readonly kind: "go";
  readonly path: ArtifactPath;
}

/** A file of a Maven repository, by its coordinates. */
export interface MavenRequest {
  readonly kind: "maven";
  readonly group: string;
  readonly artifact: string;
  readonly version: string;
  /** `jar` by default. */
  readonly extension?: string;
  readonly classifier?: string;
  readonly sha256: string;
  /** True to unpack a zip into the directory `path`. */
  readonly unpack?: true;
  readonly path: ArtifactPath;
}

/** A package of the npm registry. Its contents are unpacked into the directory `path`; no script of it runs. */
export interface NpmRequest {
  readonly kind: "npm";
  readonly name: string;
  readonly version: string;
  readonly sha256: string;
  readonly path: ArtifactPath;
}

/** A plugin that the operator of the host adds: a zip of the host, unpacked into the directory `path`. */
export interface PluginRequest {
  readonly kind: "plugin";
  readonly name: string;
  readonly version: string;
  /** Hash of the checked zip. */
  readonly sha256: string;
  /** Path of the zip on the host. */
  readonly file: string;
  readonly path: ArtifactPath;
}

/**
 * A program from a Debian package that the operator of the host adds. Nothing else of the package is used, and no
 * script of it runs. `path` is the program's path in the image.
 */
export interface DebRequest {
  readonly kind: "deb";
  readonly name: string;
  readonly version: string;
  /** Hash of the checked package. */
  readonly sha256: string;
  /** Path of the package on the host. */
  readonly file: string;
  /** Path of the program in the package, such as `usr/bin/mongod`. */
  readonly program: string;
  readonly path: ArtifactPath;
}

/** A file whose text the recipe itself has, such as a descriptor that a registry's package lacks. */
export interface TextRequest {
  readonly kind: "text";
  readonly name: string;
  readonly version: string;
  readonly text: string;
  readonly path: ArtifactPath;
}

/** An artifact in the archive, as the manifest describes it. */
export interface Artifact {
  readonly kind: ArtifactRequest["kind"];
  /**
   * Name in its registry: module of a Go program, `group:artifact`, npm or Debian package. A text has one by its
   * recipe, a plugin by its descriptor.
   */
  readonly name: string;
  readonly version: string;
  /** SHA-256 of the file in the archive, hex; also its name there. */
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly path: string;
  readonly form: ArtifactForm;
  /** Maven: the extension, if it is not `jar`. */
  readonly extension?: string;
  readonly classifier?: string;
  /** Go: hash of the module's files, in the format of go.sum. */
  readonly sum?: string;
  /** Go: the modules and the standard library inside the program. */
  readonly modules?: readonly GoModule[];
}

/** How a file of the archive is added to the tree: as an executable, unchanged, or unpacked. */
export type ArtifactForm = "program" | "file" | "tarball" | "zip";

export interface GoModule {
  readonly name: string;
  readonly version: string;
  readonly sum?: string;
}

/** Artifacts of an image and the script that adds them to the tree; both are parts of the digest. */
export interface AddedArtifacts {
  readonly files: readonly Artifact[];
  readonly script: string;
}

/** Name of an artifact for operators, such as `Maven artifact org.slf4j:slf4j-api 2.0.17`. */
export function titleOf(artifact: ArtifactRequest): string {
  const { kind, version } = artifact;
  if (kind === "go") return `Go module ${artifact.module} ${version}`;
  if (kind === "npm") return `npm package ${artifact.name} ${version}`;
  if (kind === "deb") return `Debian package ${artifact.name} ${version}`;
  if (kind === "text" || kind === "plugin") return `${kind} ${artifact.name} ${version}`;
  const parts = [artifact.extension, artifact.classifier].filter((part) => part !== undefined);
  return `Maven artifact ${[`${artifact.group}:${artifact.artifact}`, ...parts].join(":")} ${version}`;
}

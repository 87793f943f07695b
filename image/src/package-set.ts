import { createHash } from "node:crypto";
import type { AddedArtifacts } from "./artifact.ts";

/** A Debian package of an image. */
export interface Package {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  /** SHA-256 of the .deb, hex; also its name in the archive. */
  readonly sha256: string;
  readonly sizeBytes: number;
  /** Paragraph of the package in the index, without the mirror's path. */
  readonly control: string;
}

/** A package with its path below the mirror's address. */
export interface OfferedPackage extends Package {
  readonly path: string;
}

/** Parses the paragraphs of a Packages index (deb822); skips incomplete ones. */
export function parseIndex(text: string): OfferedPackage[] {
  return text
    .split(/\n\n+/)
    .map(parseParagraph)
    .filter((each) => each !== undefined);
}

function parseParagraph(text: string): OfferedPackage | undefined {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(text)?.[1];
  const [name, version, architecture] = [field("Package"), field("Version"), field("Architecture")];
  const [sha256, size, path] = [field("SHA256"), field("Size"), field("Filename")];
  if (name === undefined || version === undefined || architecture === undefined) return undefined;
  if (sha256 === undefined || size === undefined || path === undefined) return undefined;
  const control = text
    .split("\n")
    .filter((line) => !/^(Filename|Size|MD5sum|SHA1|SHA256|SHA512|Description-md5):/.test(line))
    .join("\n");
  return { name, version, architecture, sha256, sizeBytes: Number(size), control: control.trim(), path };
}

/** Packages index for apt. Each file is in the directory of the index, named by its hash. */
export function indexOf(packages: readonly Package[]): string {
  return packages
    .map(({ control, sha256, sizeBytes }) =>
      [control, `Filename: ./${fileOf(sha256)}`, `Size: ${sizeBytes}`, `SHA256: ${sha256}`, "", ""].join("\n"),
    )
    .join("");
}

/** Name of a package's file in the archive. */
export function fileOf(sha256: string): string {
  return `${sha256}.deb`;
}

/** Contents of an image: its packages and artifacts, and the scripts that process them. */
export interface ImageContents {
  readonly packages: readonly Package[];
  /** Absent in an image that has only packages. */
  readonly artifacts?: AddedArtifacts;
  /** Text of the build script. */
  readonly script: string;
  /** False without root: package scripts cannot run, so the packages are only unpacked. */
  readonly installed: boolean;
}

/** Digest of 16 hex digits, independent of the order of packages and artifacts. */
export function digestOf({ packages, script, installed, artifacts }: ImageContents): string {
  const lines = packages.map(
    ({ name, version, architecture, sha256 }) => `${name} ${version} ${architecture} ${sha256}`,
  );
  const hash = createHash("sha256").update(`${lines.sort().join("\n")}\n${installed ? "installed" : "unpacked"}\n`);
  hash.update(script);
  if (artifacts !== undefined) {
    const added = artifacts.files.map(
      ({ kind, name, version, sha256, form, path }) => `${kind} ${name} ${version} ${sha256} ${form} ${path}`,
    );
    hash.update(`\n${added.sort().join("\n")}\n${artifacts.script}`);
  }
  return hash.digest("hex").slice(0, 16);
}

/** Upstream version: `17.11` of `17.11-0+deb13u1`, `8.1.4` of `2:8.1.4+dfsg1-1`, `2.7.0` of the Go module `v2.7.0`. */
export function upstreamVersion(version: string): string {
  const withoutEpoch = version.replace(/^(\d+:|v(?=\d))/, "");
  const withoutRevision = withoutEpoch.replace(/-[^-]*$/, "");
  return withoutRevision.replace(/[+~].*$/, "");
}

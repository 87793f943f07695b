import { createHash } from "node:crypto";
import type { Artifact, GoModule } from "./artifact.ts";
import { isGuestBoot } from "./guest-boot.ts";
import type { ImageManifest } from "./image-manifest.ts";
import type { Package } from "./package-set.ts";

/**
 * The contents of an image, or of a guest kernel, as CycloneDX 1.6 (ECMA-424) in JSON. The same image has the
 * same text.
 */
export function billOfMaterials(manifest: ImageManifest): object {
  const { id, suite, packages, artifacts: { files = [] } = {} } = manifest;
  const added = files.toSorted((a, b) => (referenceOf(a) < referenceOf(b) ? -1 : 1));
  const modules = modulesIn(added);
  const sorted = [...packages].sort((a, b) => (a.name < b.name ? -1 : 1));
  const refs = new Map(sorted.map((each) => [each.name, packageUrl(each, suite)]));
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidOf(id)}`,
    version: 1,
    metadata: {
      ...(manifest.made && { timestamp: new Date(manifest.made.at).toISOString() }),
      component: {
        type: "operating-system",
        "bom-ref": id,
        name: isGuestBoot(id) ? "holdfast-guest-boot" : "holdfast-node-image",
        version: id,
        description: `Debian ${suite}`,
      },
    },
    components: [
      ...sorted.map((each) => componentOf(each, suite)),
      ...added.map(artifactComponent),
      ...modules.map(moduleComponent),
    ],
    dependencies: [
      { ref: id, dependsOn: [...refs.values(), ...added.map(referenceOf)] },
      ...sorted.map((each) => ({ ref: packageUrl(each, suite), dependsOn: dependenciesOf(each, refs) })),
      ...added.map((each) => ({ ref: referenceOf(each), dependsOn: (each.modules ?? []).map(moduleUrl).toSorted() })),
    ],
  };
}

function componentOf(each: Package, suite: string) {
  const { name, version, architecture, sha256, control } = each;
  const field = (key: string) => new RegExp(`^${key}: (.*)$`, "m").exec(control)?.[1];
  const [maintainer, homepage, source] = [field("Maintainer"), field("Homepage"), field("Source")];
  return {
    type: "library",
    "bom-ref": packageUrl(each, suite),
    name,
    version,
    purl: packageUrl(each, suite),
    ...(maintainer && { supplier: { name: maintainer.replace(/ <.*$/, "") } }),
    ...(field("Description") && { description: field("Description") }),
    hashes: [{ alg: "SHA-256", content: sha256 }],
    ...(homepage && URL.canParse(homepage) && { externalReferences: [{ type: "website", url: homepage }] }),
    properties: [
      { name: "holdfast:architecture", value: architecture },
      ...(source === undefined ? [] : [{ name: "holdfast:source", value: source }]),
    ],
  };
}

/** Dependencies that are in the image. If several alternatives of one are in the image, all of them. */
function dependenciesOf({ control }: Package, refs: ReadonlyMap<string, string>): string[] {
  const lines = [...control.matchAll(/^(?:Pre-)?Depends: (.*)$/gm)].map(([, list = ""]) => list);
  const names = lines.flatMap((list) => list.split(/[,|]/)).map((word) => word.trim().replace(/[ :(].*$/, ""));
  return [...new Set(names.flatMap((name) => refs.get(name) ?? []))].sort();
}

/** Package URL in the format of the purl specification for Debian packages. */
function packageUrl({ name, version, architecture }: Package, suite: string): string {
  const encoded = [name, version].map(encodeURIComponent);
  return `pkg:deb/debian/${encoded[0]}@${encoded[1]}?arch=${architecture}&distro=${suite}`;
}

/** An artifact may be in an image several times, at different paths. */
function referenceOf(artifact: Artifact): string {
  return `${artifactUrl(artifact)}#${artifact.path.slice(1)}`;
}

function artifactComponent(artifact: Artifact) {
  const { kind, name, version, sha256, path, form, sum } = artifact;
  const [group, artifactName = name] = kind === "maven" ? name.split(":") : [undefined, name];
  return {
    type: form === "program" ? "application" : "library",
    "bom-ref": referenceOf(artifact),
    ...(group !== undefined && { group }),
    name: artifactName,
    version,
    purl: artifactUrl(artifact),
    hashes: [{ alg: "SHA-256", content: sha256 }],
    properties: [
      { name: "holdfast:path", value: path },
      ...(sum === undefined ? [] : [{ name: "holdfast:go-sum", value: sum }]),
    ],
  };
}

/** Each module once, although several programs may have it. */
function modulesIn(artifacts: readonly Artifact[]): GoModule[] {
  const byUrl = new Map(
    artifacts.flatMap(({ modules = [] }) => modules.map((each) => [moduleUrl(each), each] as const)),
  );
  return [...byUrl].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}

/** A component without a hash: go.sum's hash covers all files of a module, which no hash of CycloneDX does. */
function moduleComponent(module: GoModule) {
  const { name, version, sum } = module;
  return {
    type: "library",
    "bom-ref": moduleUrl(module),
    name,
    version,
    purl: moduleUrl(module),
    ...(sum !== undefined && { properties: [{ name: "holdfast:go-sum", value: sum }] }),
  };
}

/** Package URLs in the formats of the purl specification for Go, Maven and npm; `generic` for a recipe's own text. */
function artifactUrl({ kind, name, version, extension = "jar", classifier }: Artifact): string {
  if (kind === "go") return moduleUrl({ name, version });
  const path = name
    .split(kind === "maven" ? ":" : "/")
    .map(encodeURIComponent)
    .join("/");
  const qualifiers = classifier === undefined ? "" : `classifier=${encodeURIComponent(classifier)}&`;
  const suffix = kind === "maven" ? `?${qualifiers}type=${encodeURIComponent(extension)}` : "";
  return `pkg:${kind === "text" || kind === "plugin" ? "generic" : kind}/${path}@${encodeURIComponent(version)}${suffix}`;
}

function moduleUrl({ name, version }: Pick<GoModule, "name" | "version">): string {
  return `pkg:golang/${name.split("/").map(encodeURIComponent).join("/")}@${encodeURIComponent(version)}`;
}

/** UUID of the image id (RFC 9562, version 8). */
function uuidOf(id: string): string {
  const hex = createHash("sha256").update(id).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

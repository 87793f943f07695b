import type { ImageManifest } from "./image-manifest.ts";
import { upstreamVersion } from "./package-set.ts";

/**
 * Versions of the libraries in an image that order texts for engines, by the names that PostgreSQL has for them: `libc` and
 * `ICU`. The order of a collation changes with these and never with a distribution's revision of one. A library that the
 * image has not is left out.
 */
export function textLibrariesOf({ packages }: Pick<ImageManifest, "packages">): Record<string, string> {
  // An image may have an older one too, for an engine that only upgrades start.
  const versionOf = (name: RegExp) =>
    packages
      .filter((each) => name.test(each.name))
      .sort((a, b) => b.name.localeCompare(a.name, "en", { numeric: true }))[0]?.version;
  const found = { libc: versionOf(/^libc6$/), ICU: versionOf(/^libicu\d+$/) };
  return Object.fromEntries(
    Object.entries(found).flatMap(([library, version]) =>
      version === undefined ? [] : [[library, upstreamVersion(version)]],
    ),
  );
}

import type { ImageManifest } from "./image-manifest.ts";
import { upstreamVersion } from "./package-set.ts";

/**
 * Versions of an image's collation libraries, by PostgreSQL's names of the providers: `libc` and `ICU`. Collation order
 * changes with these versions, never with a distribution's revision. Absent libraries are left out.
 */
export function textLibrariesOf({ packages }: Pick<ImageManifest, "packages">): Record<string, string> {
  // An image may also have an earlier version of a library, for an engine that only upgrades start.
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

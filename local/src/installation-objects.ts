import { fileURLToPath, pathToFileURL } from "node:url";
import type { PlatformParts } from "./platform-parts.ts";

type Parts = {
  readonly installation: Pick<PlatformParts["installation"], "objects">;
  readonly layout: Pick<PlatformParts["layout"], "objects">;
};

/** Where the installation's objects are, as controllers read it. */
export function objectsUrl({ installation, layout }: Parts): string {
  return installation.objects ?? pathToFileURL(layout.objects).href;
}

/** The directory that they are in; undefined for those in S3. */
export function objectsDirectory(parts: Parts): string | undefined {
  const url = objectsUrl(parts);
  return url.startsWith("file:") ? fileURLToPath(url) : undefined;
}

import { join } from "node:path";
import type { Program } from "./catalog.ts";
import { findHostEngines } from "./host-engines.ts";
import type { Launch, LaunchOptions } from "./in-image.ts";
import { inImage, onHost } from "./in-image.ts";
import { findSoftware } from "./node-image.ts";

/** An installed program that the platform itself runs: etcd, or the history database. */
export interface PlatformProgram {
  readonly source: "image" | "host";
  /** Path of an executable, for `argv[0]` of `launch`. */
  executable(name: string): string;
  launch(options: LaunchOptions): Launch;
}

/** The program in an image, else the host's, else undefined. */
export function findPlatformProgram(
  imagesDir: string,
  program: Program,
  version: string,
  environment: Readonly<Record<string, string | undefined>>,
): PlatformProgram | undefined {
  const found = findSoftware(imagesDir, program, version);
  if (found !== undefined) {
    return {
      source: "image",
      executable: (name) => join(found.software, "bin", name),
      launch: (options) => inImage(found.image.root, options),
    };
  }
  const host = findHostEngines(program, environment)[0];
  if (host === undefined) return undefined;
  return { source: "host", executable: (name) => join(host.path, "bin", name), launch: onHost };
}

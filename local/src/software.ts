import type { Program } from "@holdfast/image/catalog.ts";
import { ImageImpossible } from "@holdfast/image/image-impossible.ts";
import { ensureImage } from "@holdfast/image/make-image.ts";
import type { PlatformProgram } from "@holdfast/image/platform-program.ts";
import { findPlatformProgram } from "@holdfast/image/platform-program.ts";
import { withProgress } from "./progress.ts";
import { UserError } from "./user-error.ts";

export interface PlatformSoftware {
  readonly etcd: PlatformProgram;
  readonly postgresql: PlatformProgram;
}

interface SoftwareOptions {
  readonly imagesDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  print(line: string): void;
  readonly signal: AbortSignal;
}

/** Programs of the node image, which is built first if necessary; programs of the host if no image can be built. */
export async function openSoftware(options: SoftwareOptions): Promise<PlatformSoftware> {
  const reason = await ensureNodeImage(options);
  return { etcd: find("etcd", "3.5", options, reason), postgresql: find("postgresql", "17", options, reason) };
}

/** etcd alone, for a host with a controller; throws a UserError like `openSoftware`. */
export async function openEtcd(options: SoftwareOptions): Promise<PlatformProgram> {
  return find("etcd", "3.5", options, await ensureNodeImage(options));
}

function find(
  program: Program,
  version: string,
  { imagesDir, environment }: SoftwareOptions,
  reason: string,
): PlatformProgram {
  const found = findPlatformProgram(imagesDir, program, version, environment);
  if (found !== undefined) return found;
  throw new UserError(`${program} is neither in a node image nor on this host; ${reason}`);
}

/** Builds the node image of machines; returns the reason if it cannot be built, and then engines of this host run. */
export async function ensureNodeImage({
  imagesDir,
  print,
  signal,
}: Omit<SoftwareOptions, "environment">): Promise<string> {
  try {
    await withProgress(print, (progress) => ensureImage({ imagesDir, recipe: "trixie", progress, signal }));
    return "";
  } catch (error) {
    if (!(error instanceof ImageImpossible)) throw error;
    print(`no node image: ${error.message}`);
    print("using the engines of this host instead");
    return error.message;
  }
}

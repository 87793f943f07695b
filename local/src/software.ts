import type { Program } from "@holdfast/image/catalogue.ts";
import { ensureImage, ImageImpossible } from "@holdfast/image/make-image.ts";
import type { PlatformProgram } from "@holdfast/image/platform-program.ts";
import { findPlatformProgram } from "@holdfast/image/platform-program.ts";
import { UserError } from "./user-error.ts";

export interface PlatformSoftware {
  readonly etcd: PlatformProgram;
  readonly postgresql: PlatformProgram;
}

interface SoftwareOptions {
  readonly imagesDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  say(line: string): void;
  readonly signal: AbortSignal;
}

/** Programs of the node image, made first if need be; those of the host where no image can be made. */
export async function openSoftware(options: SoftwareOptions): Promise<PlatformSoftware> {
  const { imagesDir, say, signal } = options;
  let reason = "";
  try {
    await ensureImage({ imagesDir, suite: "trixie", progress: say, signal });
  } catch (error) {
    if (!(error instanceof ImageImpossible)) throw error;
    reason = error.message;
    say(`no node image: ${reason}`);
    say("using the engines of this host instead");
  }
  return { etcd: find("etcd", "3.5"), postgresql: find("postgresql", "17") };

  function find(program: Program, version: string): PlatformProgram {
    const found = findPlatformProgram(imagesDir, program, version, options.environment);
    if (found !== undefined) return found;
    throw new UserError(`${program} is neither in a node image nor on this host; ${reason}`);
  }
}

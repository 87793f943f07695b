import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inImage } from "@holdfast/image/in-image.ts";
import { ImageImpossible } from "@holdfast/image/image-impossible.ts";
import { ensureTree } from "@holdfast/image/make-image.ts";
import { imagesDirectory, makeImageScript } from "@holdfast/image/node-image.ts";
import { asRoot, testUid } from "./platform-software.ts";
import { startTemporaryProcess, type TemporaryProcess } from "./temporary-process.ts";

/** Debian's own programs that judge what the platform sends, in a tree of their own that is made once and kept in the cache. */
export interface JudgeImage {
  /** Starts one of its programs; the directories are at the same path inside. Resolves once it printed `ready`. */
  start(argv: readonly string[], binds: readonly string[], ready: RegExp): Promise<TemporaryProcess>;
}

const suite = "trixie";
const packages = ["util-linux", "mount", "nginx", "webhook"];

/** The image, or why this host cannot have it: it takes apt with a Debian mirror, and mmdebstrap or root to install that. */
export async function judgeImage(): Promise<JudgeImage | string> {
  const digest = createHash("sha256")
    .update(packages.join() + readFileSync(makeImageScript, "utf8"))
    .digest("hex");
  const root = join(imagesDirectory(process.env), `judges-${suite}-${digest.slice(0, 16)}`);
  try {
    await ensureTree({ root, suite, packages }, { progress: (line) => console.error(line) });
  } catch (error) {
    if (error instanceof ImageImpossible) return error.message;
    throw error;
  }
  return {
    start: (argv, binds, ready) => startTemporaryProcess(inImage(root, { argv, uid: testUid, binds, asRoot }), ready),
  };
}

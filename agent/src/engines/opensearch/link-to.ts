import { readlink } from "node:fs/promises";
import type { EngineDeps } from "../engine-deps.ts";

/** Has a link at this path name the target, in place of a file that an interrupted restore left there. */
export async function linkTo(
  { runAsEngine: run }: Pick<EngineDeps, "runAsEngine">,
  path: string,
  target: string,
  signal: AbortSignal,
): Promise<void> {
  // A full disk has no space for another link.
  if ((await linkedBy(path)) !== target) await run(["ln", "-sfn", target, path], { signal });
}

const absentCode = "ENOENT";
/** The error of readlink for a path that is no link. */
const noLinkCode = "EINVAL";

async function linkedBy(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === absentCode || code === noLinkCode) return undefined;
    throw error;
  }
}

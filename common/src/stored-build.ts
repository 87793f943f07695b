import { createHash, randomUUID } from "node:crypto";
import { constants, globSync, readFileSync } from "node:fs";
import { access, mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Prefix of a build that has not ended. */
const partialPrefix = "partial-";

export interface BuildSteps<T> {
  /** Writes the build into an empty directory. */
  build(directory: string): Promise<void>;
  /** Reads a finished build; rejects if the directory has none. */
  read(directory: string): Promise<T>;
}

/**
 * Reads `stored/<digest>`, or builds it first: a build is the same for the same digest of its inputs. The newest `max`
 * builds stay in `stored`. A `stored` that this process cannot write has no builds: each call builds.
 */
export async function storedBuild<T>(
  stored: string,
  digest: string,
  { build, read }: BuildSteps<T>,
  max = 1,
): Promise<T> {
  const directory = join(stored, digest);
  const found = await read(directory).catch(() => undefined);
  if (found !== undefined) return found;
  const isStored = await mkdir(stored, { recursive: true })
    .then(() => access(stored, constants.W_OK))
    .then(
      () => true,
      () => false,
    );
  const partial = isStored
    ? join(stored, `${partialPrefix}${randomUUID()}`)
    : await mkdtemp(join(tmpdir(), "holdfast-build-"));
  try {
    await mkdir(partial, { recursive: true });
    await build(partial);
    const built = await read(partial);
    if (isStored) {
      // Another process may have stored the same build.
      await rename(partial, directory).catch(() => undefined);
      await removeOldest(stored, max);
    }
    return built;
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/** Removes all builds but the newest `max`. */
async function removeOldest(stored: string, max: number): Promise<void> {
  const names = (await readdir(stored)).filter((name) => !name.startsWith(partialPrefix));
  const builds = await Promise.all(
    names.map(async (name) => ({
      name,
      builtMs: (await stat(join(stored, name)).catch(() => undefined))?.mtimeMs ?? 0,
    })),
  );
  const oldest = builds.toSorted((a, b) => b.builtMs - a.builtMs).slice(max);
  for (const { name } of oldest) await rm(join(stored, name), { recursive: true, force: true });
}

/**
 * 16 hex digits of a digest of the files that the patterns match below `root`, and of texts such as Node's version. It
 * reads thousands of small files, which takes five times as long one promise after another.
 */
export function digestOfFiles(root: string, patterns: readonly string[], texts: readonly string[] = []): string {
  const entries = globSync(patterns, { cwd: root, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const hash = createHash("sha256").update(JSON.stringify(texts));
  for (const path of paths.toSorted()) {
    const bytes = readFileSync(path);
    hash.update(`${path.slice(root.length)} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest("hex").slice(0, 16);
}

import { constants } from "node:fs";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isSafePath, type SpoolFiles } from "../../spool-files/spool-files.ts";
import { jsonFrame, readJsonFrames } from "../../json-frames.ts";

/** Headers of a repository's frames; `part` is followed by the bytes of a file at a position. */
type RepositoryFrame =
  | { readonly kind: "part"; readonly path: string; readonly at: number; readonly bytes: number }
  /** The files so far are those of a canceled snapshot. */
  | { readonly kind: "restart" }
  | { readonly kind: "end" };

export const restartOfRepository = (): Buffer => jsonFrame({ kind: "restart" } satisfies RepositoryFrame);
export const endOfRepository = (): Buffer => jsonFrame({ kind: "end" } satisfies RepositoryFrame);

/** Frames of a file's bytes from a position on, as far as the file has been written. */
export async function* fileFrames(
  files: Pick<SpoolFiles, "read">,
  path: string,
  from: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const header = (at: number, bytes: number) => jsonFrame({ kind: "part", path, at, bytes } satisfies RepositoryFrame);
  let at = from;
  for await (const bytes of files.read(path, from, signal)) {
    yield header(at, bytes.length);
    yield bytes;
    at += bytes.length;
  }
  // An empty file is a file of the repository too.
  if (at === 0) yield header(0, 0);
}

/** Writes the files of a repository; throws for a stream that ends too early. */
export async function writeRepository(
  root: string,
  stream: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  let current: { readonly path: string; readonly file: FileHandle } | undefined;
  const frames = readJsonFrames<RepositoryFrame>(stream, (header) => (header.kind === "part" ? header.bytes : 0));
  try {
    for await (const { header, content } of frames) {
      signal.throwIfAborted();
      if (header.kind === "end") break;
      if (header.kind === "restart") {
        await current?.file.close();
        current = undefined;
        await rm(root, { recursive: true, force: true });
        continue;
      }
      const { path, at } = header;
      if (!isSafePath(path)) throw new Error("the backup has a file outside of its repository");
      if (current?.path !== path) {
        await current?.file.close();
        current = undefined;
        await mkdir(dirname(join(root, path)), { recursive: true, mode: 0o750 });
        // Parts of a file that grew while it was read are between those of others.
        const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW;
        current = { path, file: await open(join(root, path), flags, 0o640) };
      }
      await current.file.write(content, 0, content.length, at);
    }
  } finally {
    await current?.file.close();
  }
}

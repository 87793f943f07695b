import { constants } from "node:fs";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { jsonFrame, readJsonFrames } from "../../json-frames.ts";

/** Headers of a repository's frames; `part` is followed by the bytes of a file at a position. */
type RepositoryFrame =
  | { readonly kind: "part"; readonly path: string; readonly at: number; readonly bytes: number }
  /** The files so far are those of a canceled snapshot. */
  | { readonly kind: "restart" }
  | { readonly kind: "end" };

/** Relative paths of a repository, which has names of letters, digits and signs alone. */
const safePath = /^(?!.*\.\.)[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/;
const partBytes = 1 << 20;

export const restartOfRepository = (): Buffer => jsonFrame({ kind: "restart" } satisfies RepositoryFrame);
export const endOfRepository = (): Buffer => jsonFrame({ kind: "end" } satisfies RepositoryFrame);

/** Frames of a file's bytes from a position on, as far as the file has been written. */
export async function* fileFrames(root: string, path: string, from: number): AsyncGenerator<Buffer> {
  const file = await open(join(root, path), constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    for (let at = from; ; ) {
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(partBytes), 0, partBytes, at);
      // An empty file is a file of the repository too.
      if (bytesRead === 0 && at > 0) return;
      yield jsonFrame({ kind: "part", path, at, bytes: bytesRead } satisfies RepositoryFrame);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
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
      if (!safePath.test(path)) throw new Error("the backup has a file outside of its repository");
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

import { chmod, type FileHandle, lstat, mkdir, open, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BackupDamaged } from "@holdfast/common/backup/backup-reader.ts";
import type { DeltaStep } from "@holdfast/common/backup/page-delta.ts";
import { hasCode } from "@holdfast/common/system-error.ts";

/**
 * Applies a delta to the files below a directory in place: pages are overwritten, files are created, truncated or
 * extended, and files that the delta does not name are removed. Rejects with BackupDamaged if a page to be retained is
 * missing.
 */
export async function patchFiles(root: string, delta: AsyncIterable<DeltaStep>): Promise<void> {
  const named = new Set([""]);
  let current: OpenFile | undefined;
  try {
    for await (const step of delta) {
      if (step.kind === "same" || step.kind === "changed") {
        if (current === undefined) throw new Error("pages come before their file");
        await (step.kind === "same" ? current.keepTo(step.to) : current.write(step.from, step.bytes));
        continue;
      }
      await current?.end();
      current = undefined;
      name(step.path, named);
      if (step.kind === "directory") await makeDirectory(join(root, step.path), step.mode);
      else current = await openFile(join(root, step.path), step.mode, step.size);
    }
    await current?.end();
  } catch (error) {
    await current?.close();
    throw error;
  }
  await removeOthers(root, "", named);
}

interface OpenFile {
  /** Retains the bytes up to this offset. */
  keepTo(to: number): Promise<void>;
  write(from: number, bytes: Buffer): Promise<void>;
  end(): Promise<void>;
  close(): Promise<void>;
}

async function openFile(path: string, mode: number, size: number): Promise<OpenFile> {
  const file = await openRegular(path, mode);
  const { size: before } = await file.stat();
  return {
    async keepTo(to) {
      if (to > before) throw new BackupDamaged(`${path} has ${before} bytes, and ${to} are to stay`);
    },
    async write(from, bytes) {
      for (let at = 0; at < bytes.length; )
        at += (await file.write(bytes, at, bytes.length - at, from + at)).bytesWritten;
    },
    async end() {
      if (before > size) await file.truncate(size);
      await file.chmod(mode);
      await file.close();
    },
    close: () => file.close(),
  };
}

/** Opens or creates a regular file; replaces anything else under that name. */
async function openRegular(path: string, mode: number): Promise<FileHandle> {
  try {
    const facts = await lstat(path);
    if (facts.isFile()) return await open(path, "r+");
    await rm(path, { recursive: true });
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  }
  return open(path, "wx+", mode);
}

async function makeDirectory(path: string, mode: number): Promise<void> {
  const facts = await lstat(path).catch((error: unknown) => {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  });
  if (facts?.isDirectory() === false) await rm(path);
  await mkdir(path, { recursive: true });
  await chmod(path, mode);
}

/** Adds the path and all its parent directories. */
function name(path: string, named: Set<string>): void {
  for (let at = path; !named.has(at); at = at.includes("/") ? at.slice(0, at.lastIndexOf("/")) : "") named.add(at);
}

async function removeOthers(root: string, below: string, named: ReadonlySet<string>): Promise<void> {
  for (const entry of await readdir(join(root, below), { withFileTypes: true })) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (!named.has(path)) await rm(join(root, path), { recursive: true });
    else if (entry.isDirectory()) await removeOthers(root, path, named);
  }
}

import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncPath } from "../sync-path.ts";
import { hasCode } from "../system-error.ts";
import { checkKey, ObjectExists, type ObjectFacts, type ObjectStore } from "./object-store.ts";

/** Directory of unfinished writes. It is not a valid segment of a key, so it is never an object. */
const unfinished = ".unfinished";

/** An object store in a directory of one host. Several processes may share it. */
export function createDirectoryStore(directory: string): ObjectStore {
  const pathOf = (key: string) => join(directory, key);

  async function factsOf(key: string): Promise<ObjectFacts | undefined> {
    const facts = await absentAsUndefined(stat(pathOf(key)));
    if (facts === undefined || !facts.isFile()) return undefined;
    return { key, sizeBytes: facts.size, modifiedAt: Math.trunc(facts.mtimeMs) };
  }

  async function publish(temporary: string, key: string, ifAbsent: boolean): Promise<void> {
    const path = pathOf(key);
    await mkdir(dirname(path), { recursive: true });
    if (ifAbsent) {
      try {
        await link(temporary, path);
      } catch (error) {
        throw hasCode(error, "EEXIST") ? new ObjectExists(key) : error;
      }
    } else await rename(temporary, path);
    // The name itself must survive a power failure too.
    await syncPath(dirname(path));
  }

  return {
    async put(key, body, { ifAbsent = false, signal } = {}) {
      checkKey(key);
      if (ifAbsent && (await factsOf(key)) !== undefined) throw new ObjectExists(key);
      await mkdir(join(directory, unfinished), { recursive: true });
      const temporary = join(directory, unfinished, randomUUID());
      try {
        await writeDurably(temporary, body, signal);
        await publish(temporary, key, ifAbsent);
      } finally {
        await rm(temporary, { force: true });
      }
      const facts = await factsOf(key);
      if (facts === undefined) throw new Error(`${key} was deleted during its write`);
      return facts;
    },
    async get(key, range) {
      checkKey(key);
      if ((await factsOf(key)) === undefined) return undefined;
      if (range !== undefined && range.end <= range.start) return empty();
      return createReadStream(pathOf(key), range && { start: range.start, end: range.end - 1 });
    },
    async head(key) {
      checkKey(key);
      return factsOf(key);
    },
    async list(prefix, { after = "", limit }) {
      const objects: ObjectFacts[] = [];
      for await (const key of keysBelow(directory, prefix, after)) {
        if (objects.length === limit) return { objects, more: true };
        const facts = await factsOf(key);
        if (facts !== undefined) objects.push(facts);
      }
      return { objects, more: false };
    },
    async delete(key) {
      checkKey(key);
      await rm(pathOf(key), { force: true });
    },
  };
}

/** Keys with the prefix after `after`, in order; directories without a match are not opened. */
async function* keysBelow(root: string, prefix: string, after: string, at = ""): AsyncGenerator<string> {
  const entries = (await absentAsUndefined(readdir(join(root, at), { withFileTypes: true }))) ?? [];
  const names = entries
    .filter(({ name }) => name !== unfinished)
    // With its trailing slash a directory sorts like its keys.
    .map((entry) => at + entry.name + (entry.isDirectory() ? "/" : ""))
    .toSorted((a, b) => (a < b ? -1 : 1));
  for (const name of names) {
    if (!name.endsWith("/")) {
      if (name > after && name.startsWith(prefix)) yield name;
      continue;
    }
    const mayHave = name.startsWith(prefix) || prefix.startsWith(name);
    if (mayHave && (name > after || after.startsWith(name))) yield* keysBelow(root, prefix, after, name);
  }
}

async function writeDurably(path: string, body: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    for await (const chunk of body) {
      signal?.throwIfAborted();
      await file.writeFile(chunk);
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

async function* empty(): AsyncGenerator<Buffer> {
  // The range is empty.
}

async function absentAsUndefined<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) return undefined;
    throw error;
  }
}

import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { createZstdDecompress } from "node:zlib";
import { openStream } from "../sealed/sealed-stream.ts";
import { through } from "../sealed/through.ts";
import {
  type BackupManifest,
  type BackupPart,
  type BackupStream,
  labelsOf,
  openManifest,
  partFormat,
  type SealingKey,
} from "./backup-manifest.ts";
import { type BackupPlace, isPartOf, manifestObject } from "./object-names.ts";

/** Reads an object; undefined only when the store says that there is none. Whatever else goes wrong is thrown. */
export type GetObject = (object: string) => Promise<AsyncIterable<Uint8Array> | undefined>;

export interface BackupReaderDeps {
  readonly place: BackupPlace;
  readonly key: SealingKey;
  readonly get: GetObject;
  /** Of the manifest as it is stored, hex, by whoever saw the backup end; undefined where nobody remembers. */
  readonly manifestSha256?: string | undefined;
}

/** One backup in the store. */
export interface BackupReader {
  readonly manifest: BackupManifest;
  /** As it is stored, hex. */
  readonly manifestSha256: string;
  /** All that it is made of: its manifest and its parts, some of them perhaps of attempts before. */
  readonly objects: ReadonlySet<string>;
  /**
   * Plain bytes of a stream. Only genuine bytes come out, in their order; what is missing, changed or too much is thrown as
   * BackupDamaged, at the latest behind the last byte: nothing counts before the end.
   */
  read(stream: BackupStream): AsyncIterable<Buffer>;
  /** Opens every byte, or of each stream and map the first and the last part; throws BackupDamaged. */
  verify(extent: "all" | "sample", onProgress?: (bytes: number) => void): Promise<void>;
}

/** What is in the store is not what was put there: no repetition heals it. */
export class BackupDamaged extends Error {
  override readonly name = "BackupDamaged";
}

/**
 * Each chunk is a round trip to the thread that decompresses. CPU time of a reader, a GB of text: 2.6 to 3.7 s with 16 KiB,
 * 1.8 to 2.0 s with 1 MiB.
 */
const plainChunkBytes = 1 << 20;

export async function openBackup(deps: BackupReaderDeps): Promise<BackupReader> {
  const { place, key, get, manifestSha256 } = deps;
  const sealed = await buffer(await present(manifestObject(place)));
  const sealedSha256 = createHash("sha256").update(sealed).digest("hex");
  if (manifestSha256 !== undefined && sealedSha256 !== manifestSha256) {
    throw new BackupDamaged("the manifest is not the one that was written");
  }
  const manifest = await openManifest(sealed, place, key).catch((error: unknown) => {
    throw damaged(manifestObject(place), error);
  });
  const all = [...manifest.streams, ...(manifest.maps ?? [])];
  for (const stream of all) checkNames(stream);

  async function present(object: string): Promise<AsyncIterable<Uint8Array>> {
    const found = await get(object);
    if (found === undefined) throw new BackupDamaged(`${object} is not in the store`);
    return found;
  }

  /** Parts are objects of this backup, and of no other: a manifest cannot point elsewhere. */
  function checkNames({ name, parts }: BackupStream): void {
    if (!/^[a-z0-9][a-z0-9._-]{0,99}$/.test(name)) throw new BackupDamaged(`${name} is no name of a stream`);
    for (const { object } of parts) {
      if (!isPartOf(place, name, object)) throw new BackupDamaged(`${object} is no part of ${name}`);
    }
  }

  async function* opened({ object, bytes, sha256 }: BackupPart): AsyncGenerator<Buffer> {
    const stored = await present(object);
    const hash = createHash("sha256");
    let size = 0;
    async function* hashed() {
      for await (const chunk of stored) {
        hash.update(chunk);
        size += chunk.byteLength;
        if (size > bytes) throw new Damage("it is too long");
        yield chunk;
      }
    }
    const expected = { ...labelsOf(partFormat, place, object), keyVersion: key.id };
    try {
      yield* openStream(marked(hashed()), expected, () => key.secret);
    } catch (error) {
      throw error instanceof Unreadable ? error.cause : damaged(object, error);
    }
    if (size !== bytes || hash.digest("hex") !== sha256) throw new BackupDamaged(`${object} is not what was stored`);
  }

  async function* read({ name, bytes, sha256, parts }: BackupStream): AsyncGenerator<Buffer> {
    const hash = createHash("sha256");
    let size = 0;
    let failure: unknown;
    async function* compressed() {
      try {
        for (const part of parts) yield* opened(part);
      } catch (error) {
        failure = error;
        throw error;
      }
    }
    try {
      for await (const chunk of through(compressed(), createZstdDecompress({ chunkSize: plainChunkBytes }))) {
        hash.update(chunk);
        size += chunk.length;
        yield chunk;
      }
    } catch (error) {
      throw failure ?? damaged(name, error);
    }
    if (size !== bytes || hash.digest("hex") !== sha256) throw new BackupDamaged(`${name} is not what was backed up`);
  }

  return {
    manifest,
    manifestSha256: sealedSha256,
    objects: new Set([manifestObject(place), ...all.flatMap(({ parts }) => parts).map(({ object }) => object)]),
    read,
    async verify(extent, onProgress) {
      let done = 0;
      const pass = async (plain: AsyncIterable<Buffer>) => {
        for await (const chunk of plain) onProgress?.((done += chunk.length));
      };
      for (const stream of all) {
        if (extent === "all") await pass(read(stream));
        else for (const part of new Set([stream.parts[0], stream.parts.at(-1)])) if (part) await pass(opened(part));
      }
    },
  };
}

class Damage extends Error {}

/** The store failed while it was read: that says nothing of what is in it. */
class Unreadable extends Error {}

async function* marked(source: AsyncIterable<Buffer | Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* source;
  } catch (error) {
    throw error instanceof Damage ? error : new Unreadable("the store failed", { cause: error });
  }
}

function damaged(what: string, error: unknown): BackupDamaged {
  return error instanceof BackupDamaged
    ? error
    : new BackupDamaged(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
}

import assert from "node:assert";
import { createHash, randomBytes } from "node:crypto";
import { createPool } from "../concurrency/pool.ts";
import { sealStream } from "../sealed/sealed-stream.ts";
import { type BackupPart, type BackupStream, labelsOf, partFormat, type SealingKey } from "./backup-manifest.ts";
import { type BackupLocation, partObject } from "./object-names.ts";
import { createPieceBuffer, type PieceBuffer, piecesOf } from "./stream-pieces.ts";

export interface BackupWriterDeps {
  readonly location: BackupLocation;
  readonly key: SealingKey;
  /**
   * Stores an object, with retries, and resolves when it is durable. The function owns the buffer until then; later the
   * writer reuses the buffer. Called at most once for an object.
   */
  readonly put: (object: string, bytes: Buffer) => Promise<void>;
  /** Parts that earlier attempts stored; none by default. */
  readonly stored?: StoredParts;
  /** Maximum number of plain bytes in a part. */
  readonly partBytes?: number;
  readonly random?: (bytes: number) => Buffer;
  readonly onProgress?: (progress: BackupProgress) => void;
}

/** Stored parts by the digest of their compressed bytes. */
export interface StoredParts {
  /** The stored part with this content, from any attempt; undefined if there is none. */
  find(stream: string, digest: string): Promise<BackupPart | undefined>;
  /** Records that a part was stored. */
  add(stream: string, digest: string, part: BackupPart): Promise<void>;
}

/** Totals over all streams. */
export interface BackupProgress {
  readonly sourceBytes: number;
  readonly storedBytes: number;
  readonly storedObjects: number;
}

/** Writes the streams of one attempt, one after the other or concurrently. */
export interface BackupWriter {
  /** Resolves when the complete stream is durable. An error of the source is thrown. */
  write(source: { name: string; member: string; bytes: AsyncIterable<Uint8Array> }): Promise<BackupStream>;
}

const usualPartBytes = 8 << 20;
/**
 * Limits over all streams, each of which costs a buffer: pieces that are read or compressed, and parts that are sealed
 * or uploaded.
 */
const [piecesAtATime, partsAtATime] = [3, 3];
/** Maximum size of a sealed part, including the overhead of zstd and encryption for incompressible bytes. */
const sealedBytesOf = (plainBytes: number) => plainBytes + Math.ceil(plainBytes / 128) + (64 << 10);
const nothingStored: StoredParts = { find: async () => undefined, add: async () => undefined };

export function createBackupWriter(deps: BackupWriterDeps): BackupWriter {
  const { location, key, put, partBytes = usualPartBytes, random = randomBytes, onProgress } = deps;
  const { stored = nothingStored } = deps;
  const progress = { sourceBytes: 0, storedBytes: 0, storedObjects: 0 };
  const pieceBuffers = createPool(piecesAtATime, () => createPieceBuffer(partBytes));
  const sealedBuffers = createPool(partsAtATime, () => Buffer.allocUnsafeSlow(sealedBytesOf(partBytes)));

  async function store(stream: string, number: number, pieceBuffer: PieceBuffer, piece: Buffer): Promise<BackupPart> {
    const into = await sealedBuffers.take();
    try {
      const object = partObject(location, stream, number);
      const { bytes, digest } = await seal(object, pieceBuffer, piece, into).finally(() =>
        pieceBuffers.release(pieceBuffer),
      );
      const part = (await stored.find(stream, digest)) ?? (await storeNew(stream, object, bytes, digest));
      progress.storedBytes += part.bytes;
      progress.storedObjects += 1;
      onProgress?.({ ...progress });
      return part;
    } finally {
      sealedBuffers.release(into);
    }
  }

  async function storeNew(stream: string, object: string, bytes: Buffer, digest: string): Promise<BackupPart> {
    const part = { object, bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
    await put(object, bytes);
    await stored.add(stream, digest, part);
    return part;
  }

  /** Returns the sealed bytes, and the digest of the compressed bytes. */
  async function seal(object: string, pieceBuffer: PieceBuffer, piece: Buffer, into: Buffer) {
    const digest = createHash("sha256");
    async function* compressed() {
      for await (const chunk of pieceBuffer.compress(piece)) {
        digest.update(chunk);
        yield chunk;
      }
    }
    let written = 0;
    const header = { ...labelsOf(partFormat, location, object), keyVersion: key.id };
    for await (const frame of sealStream(compressed(), header, () => key.secret, random)) {
      assert(written + frame.length <= into.length, "the buffer fits an incompressible part");
      written += frame.copy(into, written);
    }
    return { bytes: into.subarray(0, written), digest: digest.digest("base64url") };
  }

  return {
    async write({ name, member, bytes: source }) {
      const hash = createHash("sha256");
      let bytes = 0;
      async function* counted() {
        for await (const chunk of source) {
          hash.update(chunk);
          bytes += chunk.byteLength;
          progress.sourceBytes += chunk.byteLength;
          onProgress?.({ ...progress });
          yield chunk;
        }
      }
      const parts: Promise<BackupPart>[] = [];
      let hasFailed = false;
      let pieceBuffer: PieceBuffer | undefined;
      try {
        for await (const piece of piecesOf(
          name,
          counted(),
          async () => (pieceBuffer ??= await pieceBuffers.take()).bytes,
        )) {
          const filled = pieceBuffer;
          assert(filled !== undefined, "a piece has a buffer");
          pieceBuffer = undefined;
          const part = store(name, parts.length + 1, filled, piece);
          part.catch(() => void (hasFailed = true));
          parts.push(part);
          if (hasFailed) break;
        }
        return { name, member, codec: "zstd", bytes, sha256: hash.digest("hex"), parts: await Promise.all(parts) };
      } catch (error) {
        await Promise.allSettled(parts);
        throw error;
      } finally {
        if (pieceBuffer !== undefined) pieceBuffers.release(pieceBuffer);
      }
    },
  };
}

import assert from "node:assert";
import { createHash, randomBytes } from "node:crypto";
import { createPool } from "../pool.ts";
import { sealStream } from "../sealed/sealed-stream.ts";
import { type BackupPart, type BackupStream, labelsOf, partFormat, type SealingKey } from "./backup-manifest.ts";
import { type BackupPlace, partObject } from "./object-names.ts";
import { createPieceRoom, type PieceRoom } from "./piece-room.ts";
import { piecesOf } from "./stream-pieces.ts";

export interface BackupWriterDeps {
  readonly place: BackupPlace;
  readonly key: SealingKey;
  /**
   * Resolves when the object is durable. The bytes are its own until then, and others' afterwards. Never called twice
   * for one object; retries are its own.
   */
  readonly put: (object: string, bytes: Buffer) => Promise<void>;
  /** What an earlier attempt stored; by default there was none. */
  readonly stored?: StoredParts;
  /** Of the plain bytes in a part, at most. */
  readonly partBytes?: number;
  readonly random?: (bytes: number) => Buffer;
  readonly onProgress?: (progress: BackupProgress) => void;
}

/** Parts of a backup by what is in them: the digest of their compressed bytes. */
export interface StoredParts {
  /** The stored part with these bytes, of this attempt or an earlier one; undefined when it is to be stored. */
  find(stream: string, digest: string): Promise<BackupPart | undefined>;
  /** The store has it. */
  add(stream: string, digest: string, part: BackupPart): Promise<void>;
}

/** Counted over all streams. */
export interface BackupProgress {
  readonly sourceBytes: number;
  readonly storedBytes: number;
  readonly storedObjects: number;
}

/** Takes the streams of one attempt, one after the other or several at a time. */
export interface BackupWriter {
  /** Resolves when all of the stream is durable; what the source throws is thrown. */
  write(source: { name: string; member: string; bytes: AsyncIterable<Uint8Array> }): Promise<BackupStream>;
}

const usualPartBytes = 8 << 20;
/**
 * Of all streams: so many pieces are read or compressed, and so many parts are sealed or on their way to the store.
 * Each has memory.
 */
const [piecesAtATime, partsAtATime] = [3, 3];
/** What zstd and seals add to bytes that do not compress, at most. */
const sealedBytesOf = (plainBytes: number) => plainBytes + Math.ceil(plainBytes / 128) + (64 << 10);
const nothingStored: StoredParts = { find: async () => undefined, add: async () => undefined };

export function createBackupWriter(deps: BackupWriterDeps): BackupWriter {
  const { place, key, put, partBytes = usualPartBytes, random = randomBytes, onProgress } = deps;
  const { stored = nothingStored } = deps;
  const progress = { sourceBytes: 0, storedBytes: 0, storedObjects: 0 };
  const rooms = createPool(piecesAtATime, () => createPieceRoom(partBytes));
  const sealedRooms = createPool(partsAtATime, () => Buffer.allocUnsafeSlow(sealedBytesOf(partBytes)));

  async function store(stream: string, number: number, room: PieceRoom, piece: Buffer): Promise<BackupPart> {
    const into = await sealedRooms.take();
    try {
      const object = partObject(place, stream, number);
      const { bytes, digest } = await seal(object, room, piece, into).finally(() => rooms.give(room));
      const part = (await stored.find(stream, digest)) ?? (await storeNew(stream, object, bytes, digest));
      progress.storedBytes += part.bytes;
      progress.storedObjects += 1;
      onProgress?.({ ...progress });
      return part;
    } finally {
      sealedRooms.give(into);
    }
  }

  async function storeNew(stream: string, object: string, bytes: Buffer, digest: string): Promise<BackupPart> {
    const part = { object, bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
    await put(object, bytes);
    await stored.add(stream, digest, part);
    return part;
  }

  /** Answers with what is sealed, and the digest of the compressed bytes. */
  async function seal(object: string, room: PieceRoom, piece: Buffer, into: Buffer) {
    const digest = createHash("sha256");
    async function* compressed() {
      for await (const chunk of room.compress(piece)) {
        digest.update(chunk);
        yield chunk;
      }
    }
    let held = 0;
    const header = { ...labelsOf(partFormat, place, object), keyVersion: key.id };
    for await (const frame of sealStream(compressed(), header, () => key.secret, random)) {
      assert(held + frame.length <= into.length, "a part has room for what does not compress");
      held += frame.copy(into, held);
    }
    return { bytes: into.subarray(0, held), digest: digest.digest("base64url") };
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
      let room: PieceRoom | undefined;
      try {
        for await (const piece of piecesOf(name, counted(), async () => (room ??= await rooms.take()).bytes)) {
          const taken = room;
          assert(taken !== undefined, "a piece is in a room");
          room = undefined;
          const part = store(name, parts.length + 1, taken, piece);
          part.catch(() => void (hasFailed = true));
          parts.push(part);
          if (hasFailed) break;
        }
        return { name, member, codec: "zstd", bytes, sha256: hash.digest("hex"), parts: await Promise.all(parts) };
      } catch (error) {
        await Promise.allSettled(parts);
        throw error;
      } finally {
        if (room !== undefined) rooms.give(room);
      }
    },
  };
}

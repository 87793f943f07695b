/** Bytes by key, as in S3: an object exists completely or not at all, and never changes. */
export interface ObjectStore {
  /**
   * Stores the stream as an object, which becomes visible only when it is complete and durable. With `ifAbsent` exactly
   * one of several writers succeeds; the others get ObjectExists. A failed stream stores nothing.
   */
  put(key: string, body: AsyncIterable<Uint8Array>, options?: PutOptions): Promise<ObjectFacts>;
  /** Reads an object; undefined if it does not exist. The caller may stop reading at any point. */
  get(key: string, range?: ByteRange): Promise<AsyncIterable<Buffer> | undefined>;
  head(key: string): Promise<ObjectFacts | undefined>;
  /** Lists objects in key order, from `after` (exclusive) on. */
  list(prefix: string, page: { after?: string; limit: number }): Promise<{ objects: ObjectFacts[]; more: boolean }>;
  /** Deletes an object; succeeds if it does not exist. */
  delete(key: string): Promise<void>;
}

export interface PutOptions {
  readonly ifAbsent?: boolean;
  readonly signal?: AbortSignal;
}

export interface ByteRange {
  /** First byte. */
  readonly start: number;
  /** First byte after the range. */
  readonly end: number;
}

export interface ObjectFacts {
  readonly key: string;
  readonly sizeBytes: number;
  readonly modifiedAt: number;
}

/** An object of this key exists already. */
export class ObjectExists extends Error {
  override readonly name = "ObjectExists";
}

const segment = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}$/;

/** Throws unless the key is a path of plain segments, which every store supports, including a directory. */
export function checkKey(key: string): void {
  if (key.length <= 900 && key.split("/").every((part) => segment.test(part))) return;
  throw new Error(`${key} is not a key of an object`);
}

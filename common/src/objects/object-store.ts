/** Bytes by key, as in S3: an object is there whole or not at all, and is never changed in part. */
export interface ObjectStore {
  /**
   * Writes all of the stream, then makes it visible, durable at once. With `ifAbsent` exactly one of several writers wins;
   * the others throw ObjectExists. A stream that fails leaves nothing.
   */
  put(key: string, body: AsyncIterable<Uint8Array>, options?: PutOptions): Promise<ObjectFacts>;
  /** Undefined when there is no such object. The stream may be left at any point. */
  get(key: string, range?: ByteRange): Promise<AsyncIterable<Buffer> | undefined>;
  head(key: string): Promise<ObjectFacts | undefined>;
  /** In key order, from `after` (exclusive) on. */
  list(prefix: string, page: { after?: string; limit: number }): Promise<{ objects: ObjectFacts[]; more: boolean }>;
  /** Nothing happens when it is gone. */
  delete(key: string): Promise<void>;
}

export interface PutOptions {
  readonly ifAbsent?: boolean;
  readonly signal?: AbortSignal;
}

export interface ByteRange {
  /** First byte. */
  readonly start: number;
  /** First byte that is not read. */
  readonly end: number;
}

export interface ObjectFacts {
  readonly key: string;
  readonly sizeBytes: number;
  readonly modifiedAt: number;
}

/** Somebody else wrote an object of this key. */
export class ObjectExists extends Error {
  override readonly name = "ObjectExists";
}

const segment = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;

/** Keys are paths of plain segments, so that every store can hold them, a directory included. */
export function checkKey(key: string): void {
  if (key.length <= 900 && key.split("/").every((part) => segment.test(part))) return;
  throw new Error(`not a key of an object: ${key}`);
}

/** Bytes that are too many for etcd or for a frame, kept in the object store for each machine apart. */
export interface PayloadStore {
  /** Stores the bytes under a new id; throws when they are over the limit, and then nothing is kept. */
  write(machineId: string, bytes: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<StoredPayload>;
  /** Undefined when the machine has no such payload. */
  read(machineId: string, id: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** What the machine has, of `most` at the most. */
  held(machineId: string, most: number): Promise<{ readonly count: number; readonly sizeBytes: number }>;
  remove(machineId: string, id: string, signal?: AbortSignal): Promise<void>;
  /** Removes what was written before this time. */
  sweep(before: number, signal?: AbortSignal): Promise<number>;
}

export interface StoredPayload {
  readonly id: string;
  readonly sizeBytes: number;
  /** Hex. */
  readonly sha256: string;
}

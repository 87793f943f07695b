import { GetObjectCommand, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";

/** Writers that replace the same objects again and again, and the newest version of each that was acknowledged. */
export interface ObjectWriters {
  /** Number of acknowledged writes. */
  readonly count: number;
  stop(): Promise<void>;
  /** Faults of the stored objects: older than acknowledged, or a mixture of two versions. Call it after `stop`. */
  faults(): Promise<readonly string[]>;
}

interface Target {
  readonly client: S3Client;
  readonly bucket: string;
}

const writers = 4;
const objectsOfWriter = 20;
const copies = 8_000;

/** The content of a version: its number again and again, 64 KB. */
function bodyOf(version: number): string {
  return `${String(version).padStart(7)} `.repeat(copies);
}

/** Starts the writers. A refused write is repeated as the next version. */
export function startWriters({ client, bucket }: Target): ObjectWriters {
  const acknowledged = new Map<string, number>();
  let [count, stopped] = [0, false];

  async function write(writer: number): Promise<void> {
    for (let version = 0; !stopped; version += 1) {
      const Key = `written/${writer}/${version % objectsOfWriter}`;
      try {
        await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body: bodyOf(version) }));
      } catch (error) {
        // A killed server ends connections, and the front responds with 503 until it runs again.
        if (!(error instanceof Error)) throw error;
        continue;
      }
      acknowledged.set(Key, version);
      count += 1;
    }
  }
  const all = Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)));

  async function faultOf([Key, version]: [string, number]): Promise<string | undefined> {
    const found = await client.send(new GetObjectCommand({ Bucket: bucket, Key }));
    const text = (await found.Body?.transformToString()) ?? "";
    const stored = Number(text.slice(0, 8));
    if (text !== bodyOf(stored)) return `${Key} is incomplete or mixed`;
    return stored < version ? `${Key} has version ${stored}; ${version} was acknowledged` : undefined;
  }

  return {
    get count() {
      return count;
    },
    async stop() {
      stopped = true;
      await all;
    },
    async faults() {
      const found: string[] = [];
      for (const entry of acknowledged) found.push((await faultOf(entry)) ?? "");
      return found.filter((fault) => fault !== "");
    },
  };
}

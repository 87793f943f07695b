import { randomBytes, createSecretKey, type KeyObject } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary, toBinary, create } from "@bufbuild/protobuf";
import { writeDurably } from "@holdfast/common/durable-file.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { type AppBatch, AppBatchSchema } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { seal, unseal } from "./sealed-text.ts";

/**
 * The apps that were served last, on disk. They are encrypted under a key in a separate file, so a copy of the state
 * file alone reveals nothing.
 */
export interface StateFile {
  /** The stored state; undefined if the file is absent or damaged. */
  read(): Promise<AppBatch | undefined>;
  /** Resolves when the state is on disk; a crash leaves the previous one. */
  write(state: AppBatch): Promise<void>;
}

const bound = "holdfast-issuer 1";

export async function openStateFile(directory: string): Promise<StateFile> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const file = join(directory, "apps.sealed");
  const key = await keyOf(join(directory, "state.key"));
  return {
    async read() {
      const sealed = await readFile(file, "utf8").catch(() => undefined);
      const plain = sealed === undefined ? undefined : unseal(key, sealed, bound);
      return plain === undefined ? undefined : fromBinary(AppBatchSchema, Buffer.from(plain, "base64"));
    },
    async write(state) {
      const plain = Buffer.from(toBinary(AppBatchSchema, create(AppBatchSchema, state))).toString("base64");
      await writeDurably(file, seal(key, plain, bound));
    },
  };
}

async function keyOf(file: string): Promise<KeyObject> {
  const stored = await readFile(file).catch((error: unknown) => {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  });
  if (stored?.length === 32) return createSecretKey(stored);
  const created = randomBytes(32);
  await writeDurably(file, created);
  return createSecretKey(created);
}

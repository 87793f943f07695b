import { randomBytes, createSecretKey, type KeyObject } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary, toBinary, create } from "@bufbuild/protobuf";
import { hasCode } from "@holdfast/common/system-error.ts";
import { type AppBatch, AppBatchSchema } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { seal, unseal } from "./sealed-text.ts";
import { writeDurably } from "./write-durably.ts";

/** What was served last, on disk: sealed under a key that is beside it, so that a copy of the file alone tells nothing. */
export interface StateFile {
  /** Undefined where there is none that is whole. */
  read(): Promise<AppBatch | undefined>;
  /** Resolves when it is on disk; a crash leaves the one before. */
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
  const kept = await readFile(file).catch((error: unknown) => {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  });
  if (kept?.length === 32) return createSecretKey(kept);
  const made = randomBytes(32);
  await writeDurably(file, made);
  return createSecretKey(made);
}

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { writeDurably } from "@holdfast/common/durable-file.ts";
import { hasCode } from "@holdfast/common/system-error.ts";

/** A text file that is encrypted under a key in another file. */
export interface SealedFile {
  /** The text; undefined if the file does not exist or another key sealed it. */
  read(): Promise<string | undefined>;
  /** Replaces the text atomically and durably. */
  write(text: string): Promise<void>;
}

const [nonceBytes, tagBytes, keyBytes] = [12, 16, 32];

/** Reads the key; the first process creates it. */
export async function sealingKey(file: string): Promise<Buffer> {
  const read = () => readFile(file, "utf8").catch((error: unknown) => unlessMissing(error));
  const stored = await read();
  if (stored !== undefined) return keyOf(stored, file);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}.new`;
  await writeFile(temporary, `${randomBytes(keyBytes).toString("base64")}\n`, { mode: 0o600 });
  // If two processes create a key concurrently, the first one remains.
  await link(temporary, file).catch((error: unknown) => {
    if (!hasCode(error, "EEXIST")) throw error;
  });
  await rm(temporary);
  return keyOf((await read()) ?? "", file);
}

export function createSealedFile(path: string, key: Buffer): SealedFile {
  return {
    async read() {
      const bytes = await readFile(path).catch((error: unknown) => unlessMissing(error));
      if (bytes === undefined || bytes.length < nonceBytes + tagBytes) return undefined;
      try {
        const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes));
        decipher.setAuthTag(bytes.subarray(-tagBytes));
        return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "utf8") + decipher.final("utf8");
      } catch {
        return undefined;
      }
    },
    async write(text) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", key, nonce);
      const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      await writeDurably(path, sealed);
    },
  };
}

function keyOf(text: string, file: string): Buffer {
  const key = Buffer.from(text.trim(), "base64");
  if (key.length !== keyBytes) throw new Error(`${file} is not a base64 key of ${keyBytes} bytes`);
  return key;
}

function unlessMissing(error: unknown): undefined {
  if (hasCode(error, "ENOENT")) return undefined;
  throw error;
}

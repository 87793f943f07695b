import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { link, mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";

/** A text on disk, sealed by a key that is in another file. */
export interface SealedFile {
  /** Undefined where there is none, or one that another key sealed. */
  read(): Promise<string | undefined>;
  /** The whole text or the one before, whatever breaks off. */
  write(text: string): Promise<void>;
}

const [nonceBytes, tagBytes, keyBytes] = [12, 16, 32];

/** The key of the file; made by the first that needs it. */
export async function sealingKey(file: string): Promise<Buffer> {
  const read = () => readFile(file, "utf8").catch((error: unknown) => unlessMissing(error));
  const there = await read();
  if (there !== undefined) return keyOf(there, file);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}.new`;
  await writeFile(temporary, `${randomBytes(keyBytes).toString("base64")}\n`, { mode: 0o600 });
  // Of two that make it at once, one key stays.
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
      const temporary = `${path}.new`;
      const file = await open(temporary, "w", 0o600);
      try {
        await file.writeFile(sealed);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
    },
  };
}

function keyOf(text: string, file: string): Buffer {
  const key = Buffer.from(text.trim(), "base64");
  if (key.length !== keyBytes) throw new Error(`${file} is no key of ${keyBytes} bytes in base64`);
  return key;
}

function unlessMissing(error: unknown): undefined {
  if (hasCode(error, "ENOENT")) return undefined;
  throw error;
}

import { rm } from "node:fs/promises";
import { join } from "node:path";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import { type KeyWithRequest, createKeyWithRequest } from "./certificate-request.ts";

/**
 * The key of an enrollment in progress. It is on disk before the token is sent: if the response or this process is
 * lost, the same token can be used again, but only for the same key.
 */
export interface EnrollmentKey {
  /** The stored key for this token, or a new one. */
  loadOrCreate(tokenDigest: string): Promise<KeyWithRequest>;
  /** Deletes the key after the certificate was saved with it. */
  delete(): Promise<void>;
}

export function createEnrollmentKey(stateDir: string): EnrollmentKey {
  const path = join(stateDir, "enrolling.json");
  return {
    async loadOrCreate(tokenDigest) {
      const bytes = await readIfExists(path);
      const stored = bytes === undefined ? undefined : (JSON.parse(bytes.toString("utf8")) as Record<string, string>);
      if (stored?.["tokenDigest"] === tokenDigest) {
        const { privateKey = "", request = "" } = stored;
        return { privateKey, request: Buffer.from(request, "base64") };
      }
      const { privateKey, request } = createKeyWithRequest();
      const content = { tokenDigest, privateKey, request: Buffer.from(request).toString("base64") };
      await writeDurably(path, JSON.stringify(content), 0o600);
      return { privateKey, request };
    },
    delete: () => rm(path, { force: true }),
  };
}

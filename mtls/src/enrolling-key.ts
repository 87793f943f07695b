import { rm } from "node:fs/promises";
import { join } from "node:path";
import { readIfThere, writeDurably } from "@holdfast/common/durable-file.ts";
import { type KeyWithRequest, makeKeyWithRequest } from "./certificate-request.ts";

/**
 * The key of an enrollment in progress. It is on disk before the token is sent: if the response or this process is
 * lost, the same token can be used again, but only for the same key.
 */
export interface EnrollingKey {
  /** The stored key for this token, or a new one. */
  of(tokenDigest: string): Promise<KeyWithRequest>;
  /** Deletes the key after the certificate was saved with it. */
  forget(): Promise<void>;
}

export function createEnrollingKey(stateDir: string): EnrollingKey {
  const path = join(stateDir, "enrolling.json");
  return {
    async of(tokenDigest) {
      const bytes = await readIfThere(path);
      const stored = bytes === undefined ? undefined : (JSON.parse(bytes.toString("utf8")) as Record<string, string>);
      if (stored?.["tokenDigest"] === tokenDigest) {
        const { privateKey = "", request = "" } = stored;
        return { privateKey, request: Buffer.from(request, "base64") };
      }
      const { privateKey, request } = makeKeyWithRequest();
      const content = { tokenDigest, privateKey, request: Buffer.from(request).toString("base64") };
      await writeDurably(path, JSON.stringify(content), 0o600);
      return { privateKey, request };
    },
    forget: () => rm(path, { force: true }),
  };
}

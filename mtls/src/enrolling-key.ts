import { rm } from "node:fs/promises";
import { join } from "node:path";
import { readIfThere, writeDurably } from "@holdfast/common/durable-file.ts";
import { type KeyWithRequest, makeKeyWithRequest } from "./certificate-request.ts";

/**
 * The key that a token is being spent for. It is on the disk before the token leaves: when the answer is lost, with the
 * connection or with this process, the same token buys another certificate for the same key, and for no other.
 */
export interface EnrollingKey {
  /** The one that was begun with, or a new one. */
  of(tokenDigest: string): Promise<KeyWithRequest>;
  /** The certificate is kept: the key is kept with it. */
  forget(): Promise<void>;
}

export function createEnrollingKey(stateDir: string): EnrollingKey {
  const path = join(stateDir, "enrolling.json");
  return {
    async of(tokenDigest) {
      const bytes = await readIfThere(path);
      const begun = bytes === undefined ? undefined : (JSON.parse(bytes.toString("utf8")) as Record<string, string>);
      if (begun?.["tokenDigest"] === tokenDigest) {
        const { privateKey = "", request = "" } = begun;
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

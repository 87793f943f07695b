import { createPrivateKey } from "node:crypto";
import { join } from "node:path";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import { createKeyWithRequest, type KeyWithRequest } from "@holdfast/mtls/certificate-request.ts";

/**
 * The private key of a data plane for host names of apps, with its certificate request, by which controllers issue
 * certificates. It is created once and never leaves the directory, so that certificates on disk remain valid for it.
 */
export async function openHostKey(directory: string): Promise<KeyWithRequest> {
  const file = join(directory, "host-key.json");
  const stored = await readIfExists(file);
  if (stored !== undefined) {
    const { privateKey, request } = JSON.parse(stored.toString("utf8")) as { privateKey: string; request: string };
    if (createPrivateKey(privateKey).asymmetricKeyType === "ec")
      return { privateKey, request: Buffer.from(request, "base64") };
  }
  const created = createKeyWithRequest();
  await writeDurably(file, JSON.stringify({ ...created, request: Buffer.from(created.request).toString("base64") }));
  return created;
}

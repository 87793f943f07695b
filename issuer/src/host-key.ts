import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { writeDurably } from "@holdfast/common/durable-file.ts";
import { createKeyWithRequest, type KeyWithRequest } from "@holdfast/mtls/certificate-request.ts";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** The private key of the hosts of all apps, with the request for their certificates. It never leaves this machine. */
export async function openHostKey(directory: string): Promise<KeyWithRequest> {
  const file = join(directory, "host-key.json");
  const stored = await readFile(file, "utf8").catch(() => undefined);
  if (stored !== undefined) {
    const { privateKey, request } = JSON.parse(stored) as { privateKey: string; request: string };
    const key: KeyObject = createPublicKey(createPrivateKey(privateKey));
    if (key.asymmetricKeyType === "ec") return { privateKey, request: Buffer.from(request, "base64") };
  }
  const created = createKeyWithRequest();
  await writeDurably(file, JSON.stringify({ ...created, request: Buffer.from(created.request).toString("base64") }));
  return created;
}

import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { makeKeyWithRequest, type KeyWithRequest } from "@holdfast/mtls/certificate-request.ts";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeDurably } from "./write-durably.ts";

/** The key that hosts of all apps are served with, and the request for their certificates. It never leaves this machine. */
export async function openHostKey(directory: string): Promise<KeyWithRequest> {
  const file = join(directory, "host-key.json");
  const kept = await readFile(file, "utf8").catch(() => undefined);
  if (kept !== undefined) {
    const { privateKey, request } = JSON.parse(kept) as { privateKey: string; request: string };
    const key: KeyObject = createPublicKey(createPrivateKey(privateKey));
    if (key.asymmetricKeyType === "ec") return { privateKey, request: Buffer.from(request, "base64") };
  }
  const made = makeKeyWithRequest();
  await writeDurably(file, JSON.stringify({ ...made, request: Buffer.from(made.request).toString("base64") }));
  return made;
}

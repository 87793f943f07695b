import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "@holdfast/common/log.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { directoryKey, storeBucket, storeName } from "@holdfast/common/objects/signed-url.ts";
import { createUrlSigner, type UrlSigner } from "@holdfast/controller/kernel/objects/url-signer.ts";
import { pemOf } from "@holdfast/controller/kernel/pki/authority-record.ts";
import { exportKey, newKeyPair } from "@holdfast/common/signing-key.ts";
import { type StoreServer, startStoreServer } from "@holdfast/store/store-server.ts";
import { createTestAuthority } from "./test-authority.ts";

/** A directory's objects behind signed URLs and TLS, under a name that no DNS server has. */
export interface TestStore {
  readonly directory: string;
  readonly objects: ObjectStore;
  readonly signer: UrlSigner;
  /** Stops the server; the directory's content remains. */
  stop(): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

export async function startTestStore(): Promise<TestStore> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-store-"));
  const key = directoryKey(randomBytes(32).toString("hex"));
  const [authority, keys] = await Promise.all([createTestAuthority(), newKeyPair()]);
  const leaf = await authority.issue({ commonName: storeName, names: [storeName], publicKey: keys.publicKey });
  const identity = { key: await exportKey(keys.privateKey), certificate: pemOf(leaf.der) };
  let server: StoreServer | undefined;
  let port = 0;

  async function start(): Promise<void> {
    server = await startStoreServer({
      directory,
      key,
      host: "127.0.0.1",
      port,
      identity,
      now: Date.now,
      monotonicMs: () => performance.now(),
      log: createLog("store", "silent"),
    });
    port = server.port;
  }

  await start();
  return {
    directory,
    objects: createDirectoryStore(directory),
    signer: createUrlSigner({
      base: `https://${storeName}:${port}/${storeBucket}`,
      key,
      endpoint: { addresses: async () => ["127.0.0.1"], port, trustBundle: () => authority.trustBundle },
      serverSideEncryption: true,
      now: Date.now,
    }),
    start,
    async stop() {
      await server?.close();
    },
    async remove() {
      await server?.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

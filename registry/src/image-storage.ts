import { createHash, randomBytes, randomUUID } from "node:crypto";
import { chown, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Log } from "@holdfast/common/log.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { readS3Location, type S3Settings } from "@holdfast/egress/s3/s3-location.ts";
import { createS3Store } from "@holdfast/egress/s3/s3-store.ts";
import { type BucketLeases, createBucketLeases } from "./bucket-leases.ts";
import { startBucketProxy } from "./bucket-proxy.ts";

/**
 * Where docker-registry stores images: below `registry/` in the object store of the installation, a directory or a
 * bucket. All registries with the same store serve the same images.
 */
export interface ImageStorage {
  /** The files of docker-registry by their names in it, such as `docker/registry/v2/...`. */
  readonly objects: ObjectStore;
  /** The directory of the files; undefined if they are in a bucket. */
  readonly directory: string | undefined;
  /** Leases of the registries with the same bucket; undefined for a directory, which one registry has. */
  readonly leases: BucketLeases | undefined;
  /** Secret of the object store, which all registries with the same images have. */
  readonly secret: string;
  /** Prepares the storage for docker-registry, and returns the `storage` part of its configuration. */
  open(): Promise<StorageDriver>;
  close(): Promise<void>;
}

export interface StorageDriver {
  readonly configuration: Readonly<Record<string, unknown>>;
  /** Variables with secrets that belong to the configuration. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface StorageSettings extends S3Settings {
  readonly objects: string;
}

export interface StorageDeps {
  /** User of docker-registry. */
  readonly uid: number;
  readonly now: () => number;
  readonly log: Log;
}

const folder = "registry";

/** Reads the settings of the object store. */
export async function openImageStorage(settings: StorageSettings, deps: StorageDeps): Promise<ImageStorage> {
  const url = new URL(settings.objects);
  return url.protocol === "s3:" ? inBucket(url, settings, deps) : inDirectory(fileURLToPath(url), settings, deps);
}

async function inDirectory(
  objects: string,
  { objectsKeyFile }: StorageSettings,
  { uid }: StorageDeps,
): Promise<ImageStorage> {
  const directory = join(objects, folder);
  return {
    objects: createDirectoryStore(directory),
    directory,
    leases: undefined,
    secret: objectsKeyFile === "" ? randomBytes(32).toString("hex") : (await readFile(objectsKeyFile, "utf8")).trim(),
    async open() {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      if (process.getuid?.() === 0) await chown(directory, uid, uid);
      return { configuration: { filesystem: { rootdirectory: directory } }, environment: {} };
    },
    close: async () => undefined,
  };
}

async function inBucket(url: URL, settings: StorageSettings, { now, log }: StorageDeps): Promise<ImageStorage> {
  const location = await readS3Location(url, settings);
  const prefix = `${location.prefix}${folder}/`;
  const objects = createS3Store({ ...location, prefix }, now);
  const leases = createBucketLeases({ objects, id: randomUUID(), now, log });
  const mayDelete = () => !leases.isSweeping() || leases.maySweep();
  const proxy = await startBucketProxy({ location, prefix, now, log, mayDelete });
  const s3 = {
    region: location.key.region,
    regionendpoint: proxy.endpoint,
    bucket: new URL(location.bucketUrl).pathname.slice(1),
    rootdirectory: `/${prefix.slice(0, -1)}`,
    encrypt: location.serverSideEncryption,
    secure: false,
    v4auth: true,
  };
  return {
    objects,
    directory: undefined,
    leases,
    secret: createHash("sha256").update(location.key.secret).digest("hex"),
    open: async () => ({
      configuration: { s3, redirect: { disable: true } },
      environment: { REGISTRY_STORAGE_S3_ACCESSKEY: proxy.key.id, REGISTRY_STORAGE_S3_SECRETKEY: proxy.key.secret },
    }),
    async close() {
      leases.close();
      await proxy.close();
    },
  };
}

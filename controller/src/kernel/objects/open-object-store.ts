import { lookup } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { directoryKey, storeBucket, storeName } from "@holdfast/common/objects/signed-url.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { readS3Location, type S3Settings } from "@holdfast/egress/s3/s3-location.ts";
import { createS3Store } from "@holdfast/egress/s3/s3-store.ts";
import { createUrlSigner, type UrlSigner } from "./url-signer.ts";

/** The installation's object store, and the signer of URLs for single objects. */
export interface OpenedObjectStore {
  readonly objects: ObjectStore;
  /** Undefined if machines cannot reach the store: then there are no backups. */
  readonly signer: UrlSigner | undefined;
}

/** Settings of a controller (kernel-settings.ts). */
export interface ObjectStoreSettings extends S3Settings {
  readonly objects: string;
  readonly objectsEndpoint: string;
}

export interface ObjectStoreDeps {
  /** PEM of the installation's authorities, which certify the process that serves a directory. */
  readonly trustBundle: () => string;
  readonly now: () => number;
}

/**
 * Opens the store of the settings. Throws NOT_CONFIGURED for a URL that is neither `file:` nor `s3:`, and for an S3
 * store without endpoint or credential.
 */
export async function openObjectStore(
  settings: ObjectStoreSettings,
  deps: ObjectStoreDeps,
): Promise<OpenedObjectStore> {
  const url = new URL(settings.objects);
  switch (url.protocol) {
    case "file:":
      return openDirectory(decodeURIComponent(url.pathname), settings, deps);
    case "s3:":
      return openS3(url, settings, deps);
    default:
      throw new HoldfastError(
        "NOT_CONFIGURED",
        `HOLDFAST_OBJECTS begins with ${url.protocol}//: use file:// or s3://.`,
      );
  }
}

async function openDirectory(
  directory: string,
  { objectsKeyFile, objectsEndpoint }: ObjectStoreSettings,
  { trustBundle, now }: ObjectStoreDeps,
): Promise<OpenedObjectStore> {
  const objects = createDirectoryStore(directory);
  if (objectsKeyFile === "" || objectsEndpoint === "") return { objects, signer: undefined };
  const key = directoryKey((await readFile(objectsKeyFile, "utf8")).trim());
  const { host, port } = endpointOf(objectsEndpoint);
  const signer = createUrlSigner({
    base: `https://${storeName}:${port}/${storeBucket}`,
    key,
    endpoint: { addresses: () => addressesOf(host), port, trustBundle },
    serverSideEncryption: false,
    now,
  });
  return { objects, signer };
}

async function openS3(url: URL, settings: ObjectStoreSettings, { now }: ObjectStoreDeps): Promise<OpenedObjectStore> {
  const location = await readS3Location(url, settings);
  const { bucketUrl, prefix, key, ca, serverSideEncryption } = location;
  const { hostname, port, protocol } = new URL(bucketUrl);
  return {
    objects: createS3Store(location, now),
    signer: createUrlSigner({
      base: `${bucketUrl}${prefix === "" ? "" : `/${prefix.slice(0, -1)}`}`,
      key,
      endpoint: {
        addresses: () => addressesOf(hostname),
        port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
        trustBundle: () => ca ?? "",
      },
      serverSideEncryption,
      now,
    }),
  };
}

/** Machines cannot resolve public names, so the controller resolves them each time that it signs URLs. */
async function addressesOf(host: string): Promise<readonly string[]> {
  const bare = host.replaceAll(/^\[|\]$/g, "");
  if (isIP(bare) !== 0) return [bare];
  return (await lookup(bare, { all: true })).map(({ address }) => address);
}

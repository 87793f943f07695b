import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

/** A static file with its headers. */
export interface Asset {
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer;
}

const packaged = dirname(fileURLToPath(import.meta.resolve("swagger-ui-dist/package.json")));
const sourceDirectory = import.meta.dirname;

/** The files that pages load; no other file is served. */
const files: ReadonlyMap<string, { readonly directory: string; readonly type: string }> = new Map([
  ["swagger-ui-bundle.js", { directory: packaged, type: "text/javascript" }],
  ["swagger-ui.css", { directory: packaged, type: "text/css" }],
  ["reference.js", { directory: sourceDirectory, type: "text/javascript" }],
  ["page.css", { directory: sourceDirectory, type: "text/css" }],
]);

const prefix = "/docs/assets/";
const compress = promisify(gzip);

/** The asset of a path under /docs/assets/, compressed for clients that accept it; undefined for any other path. */
export type ReadAsset = (path: string, acceptEncoding: string | undefined) => Promise<Asset | undefined>;

/** Creates a reader that reads and compresses each file once. */
export function createAssets(): ReadAsset {
  const read = new Map<string, Promise<Asset>>();
  return async (path, acceptEncoding = "") => {
    const name = path.startsWith(prefix) ? path.slice(prefix.length) : "";
    const file = files.get(name);
    if (file === undefined) return undefined;
    const isCompressed = /\bgzip\b/.test(acceptEncoding);
    const key = `${name} ${isCompressed}`;
    const asset = read.get(key) ?? readAsset(join(file.directory, name), file.type, isCompressed);
    read.set(key, asset);
    return asset;
  };
}

async function readAsset(path: string, type: string, isCompressed: boolean): Promise<Asset> {
  const plain = await readFile(path);
  const headers = {
    "content-type": `${type}; charset=utf-8`,
    "cache-control": "public, max-age=3600",
    vary: "accept-encoding",
  };
  if (!isCompressed) return { headers, bytes: plain };
  return { headers: { ...headers, "content-encoding": "gzip" }, bytes: await compress(plain) };
}

import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { CATALOG, type ErrorKey, errorsByStatus, HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { type Exchange, headerOf, send } from "../exchange.ts";
import type { ApiMethod } from "../method.ts";
import { protoComments } from "../openapi/proto-comments.ts";
import { escape, page, pagePolicy, referencePage } from "./page.ts";

/**
 * Serves /docs: the API reference, rendered from /openapi.json; a table of all methods, including those without REST;
 * and a page for each error, which the `type` of problem documents names. The pages load no content from other sites.
 */
export function createDocs(methods: readonly ApiMethod[]): (exchange: Exchange) => Promise<void> {
  const pages = new Map([
    ["/docs", referencePage],
    ["/docs/methods", page("Methods", tableOfMethods(methods))],
    ["/docs/errors", page("Errors", tableOfErrors())],
  ]);
  for (const key of Object.keys(CATALOG) as ErrorKey[]) {
    const { status, title, help, grpc } = CATALOG[key];
    const body = `<p>${escape(help)}</p><p>HTTP ${status}, gRPC ${grpc}.</p>`;
    pages.set(`/docs/errors/${key.toLowerCase()}`, page(`${title} (${key.toLowerCase()})`, body));
  }

  const readAsset = createAssets();

  return async (exchange) => {
    const { method } = exchange.request;
    const path = exchange.path === "/docs/" ? "/docs" : exchange.path;
    const html = pages.get(path);
    const asset = html === undefined ? await readAsset(path, headerOf(exchange.request, "accept-encoding")) : undefined;
    if (html === undefined && asset === undefined) throw new HoldfastError("NOT_FOUND", "No page has this path.");
    if (method !== "GET" && method !== "HEAD") {
      throw new HoldfastError("METHOD_NOT_ALLOWED", "Pages are read-only.", { allow: ["GET", "HEAD"] });
    }
    if (asset !== undefined) return send(exchange, 200, asset.headers, asset.bytes);
    const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": pagePolicy };
    send(exchange, 200, headers, html ?? "");
  };
}

function tableOfMethods(methods: readonly ApiMethod[]): string {
  const rows = methods.map((method) => {
    const head = method.rest === undefined ? `gRPC ${method.name}` : `${method.rest.verb} ${method.rest.path}`;
    return `<tr><td><code>${escape(head)}</code></td><td>${escape(lookUp(protoComments, method.name) ?? "")}</td><td>${escape([method.scope, ...method.additionalScopes].join(", "))}</td></tr>`;
  });
  return `<table><tr><th>Method</th><th>Description</th><th>Scope</th></tr>${rows.join("")}</table>`;
}

function tableOfErrors(): string {
  const rows = errorsByStatus.map(([key, entry]) => {
    const code = key.toLowerCase();
    return `<tr><td><a href="/docs/errors/${code}">${code}</a></td><td>${entry.status}</td><td>${escape(entry.title)}</td></tr>`;
  });
  return `<table><tr><th>Code</th><th>HTTP</th><th>Meaning</th></tr>${rows.join("")}</table>`;
}

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
function createAssets(): ReadAsset {
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

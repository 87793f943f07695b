import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip as gzipCallback } from "node:zlib";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type Exchange, headerOf, send } from "../exchange.ts";
import type { Mount } from "../mounts.ts";
import { pagePolicy } from "../docs/page.ts";

/** A file of the console, compressed in advance. */
interface ConsoleFile {
  readonly type: string;
  readonly plain: Buffer;
  readonly brotli: Buffer;
  readonly gzip: Buffer;
}

/** The built console: its page, and the files that the page loads, by name. */
export interface ConsoleFiles {
  readonly page: ConsoleFile;
  readonly assets: ReadonlyMap<string, ConsoleFile>;
}

const pageName = "index.html";
const types: ReadonlyMap<string, string> = new Map([
  [".css", "text/css; charset=utf-8"],
  [".html", "text/html; charset=utf-8"],
  [".js", "text/javascript; charset=utf-8"],
]);
const [compressBrotli, compressGzip] = [promisify(brotliCompress), promisify(gzipCallback)];

/** Reads the directory that console/bundle.ts wrote, with compressed files where it has them. Throws without a page. */
export async function readConsoleFiles(directory: string): Promise<ConsoleFiles> {
  const names = (await readdir(directory)).filter((name) => types.has(extname(name)));
  const files = new Map(
    await Promise.all(names.map(async (name) => [name, await readConsoleFile(directory, name)] as const)),
  );
  const page = files.get(pageName);
  if (page === undefined) throw new Error(`${directory} has no ${pageName} of the console`);
  files.delete(pageName);
  return { page, assets: files };
}

async function readConsoleFile(directory: string, name: string): Promise<ConsoleFile> {
  const path = join(directory, name);
  const plain = await readFile(path);
  const [brotli, gzip] = await Promise.all([
    readFile(`${path}.br`).catch(() => compressBrotli(plain)),
    readFile(`${path}.gz`).catch(() => compressGzip(plain)),
  ]);
  return { type: types.get(extname(name)) ?? "", plain, brotli, gzip };
}

const assets = "/console/assets/";

/**
 * Serves the console, a single page for browsers. Each path below /console/ except those of assets is the page, whose
 * script reads the path; "/" redirects browsers to it. Assets have their digest in their names and never change.
 */
export function createConsole(files: () => Promise<ConsoleFiles>, fail: Mount["fail"]): Mount {
  return {
    name: "console",
    prefix: "/",
    accepts: ({ path, request }) =>
      path === "/console" || path.startsWith("/console/") || (path === "/" && acceptsHtml(headerOf(request, "accept"))),
    async handle(exchange) {
      const { path, request } = exchange;
      if (request.method !== "GET" && request.method !== "HEAD")
        throw new HoldfastError("METHOD_NOT_ALLOWED", "The console is read-only.", { allow: ["GET", "HEAD"] });
      if (path === "/" || path === "/console") return send(exchange, 302, { location: "/console/" }, "");
      const { page, assets: assetsByName } = await files();
      if (!path.startsWith(assets)) return sendFile(exchange, page, pageHeaders);
      const asset = assetsByName.get(path.slice(assets.length));
      if (asset === undefined)
        throw new HoldfastError("NOT_FOUND", "The console has no such file; load the page again.");
      sendFile(exchange, asset, { "cache-control": "public, max-age=31536000, immutable" });
    },
    fail,
  };
}

function acceptsHtml(accept: string | undefined): boolean {
  return accept?.includes("text/html") === true;
}

function sendFile(exchange: Exchange, { type, plain, brotli, gzip }: ConsoleFile, headers: Record<string, string>) {
  const accepted = headerOf(exchange.request, "accept-encoding") ?? "";
  const [encoding, bytes] = /\bbr\b/.test(accepted)
    ? ["br", brotli]
    : /\bgzip\b/.test(accepted)
      ? ["gzip", gzip]
      : [undefined, plain];
  const all = {
    ...headers,
    "content-type": type,
    vary: "accept-encoding",
    "cross-origin-resource-policy": "same-origin",
    ...(encoding !== undefined && { "content-encoding": encoding }),
  };
  send(exchange, 200, all, bytes);
}

/** The policy of the page. Trusted types prevent that texts of users, logs and results become markup. */
const policy = `${pagePolicy}; require-trusted-types-for 'script'; trusted-types 'none'`;

const pageHeaders = {
  "cache-control": "no-store",
  "content-security-policy": policy,
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  "referrer-policy": "no-referrer",
};

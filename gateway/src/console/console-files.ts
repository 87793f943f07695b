import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip as gzipCallback } from "node:zlib";

/** A file of the console, compressed in advance. */
export interface ConsoleFile {
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

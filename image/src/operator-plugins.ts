import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { PluginRequest } from "./artifact.ts";
import { artifactMaxBytes } from "./artifact-archive.ts";
import type { RecipeName } from "./catalog.ts";
import {
  checkEntries,
  checkTogether,
  descriptorMaxBytes,
  type PluginDescriptor,
  PluginFault,
  parseDescriptor,
} from "./opensearch-plugin.ts";
import { opensearchHome, opensearchPluginHost } from "./recipes/opensearch.ts";
import { openZip, ZipFault } from "./zip-file.ts";

/** Plugins that the operator of a host adds to the images of a recipe. */
export interface Addition {
  readonly plugins: readonly PluginRequest[];
  /** Reason why no image can be built with them, with the file and the remedy; then there are no plugins. */
  readonly fault?: string;
}

/** Additions by recipe. */
export type Additions = Readonly<Partial<Record<RecipeName, Addition>>>;

export const noAdditions: Additions = {};

/** The environment variable with the directory of OpenSearch plugins. */
export const opensearchPluginsVariable = "HOLDFAST_OPENSEARCH_PLUGINS";

const filesMax = 100;

/**
 * Reads and checks the zips of a directory, in the order of their names; no additions without a directory. Never
 * throws for a directory or file that cannot be used: the fault is part of the result, since machines that run need
 * neither.
 */
export async function readAdditions(pluginsDirectory: string): Promise<Additions> {
  if (pluginsDirectory === "") return noAdditions;
  try {
    const plugins = await pluginsIn(pluginsDirectory);
    return plugins.length === 0 ? noAdditions : { opensearch: { plugins } };
  } catch (error) {
    const reason = error instanceof PluginFault ? error.message : fileReason(error);
    return { opensearch: { plugins: [], fault: `${opensearchPluginsVariable}: ${reason}` } };
  }
}

/** An error of the file system without the paths of the host, which users of the catalog must not see. */
function fileReason(error: unknown): string {
  if (!(error instanceof Error) || !("code" in error)) throw error;
  return `the directory or a file in it cannot be read (${String(error.code)}): correct it, and start again`;
}

async function pluginsIn(directory: string): Promise<PluginRequest[]> {
  if (!isAbsolute(directory)) throw new PluginFault("the directory is not an absolute path");
  const files = (await readdir(directory)).filter((name) => name.endsWith(".zip")).sort();
  if (files.length > filesMax)
    throw new PluginFault(`the directory has ${files.length} zips; the limit is ${filesMax}`);
  const found: { file: string; path: string; descriptor: PluginDescriptor }[] = [];
  for (const file of files) {
    const path = join(directory, file);
    found.push({ file, path, descriptor: await checked(file, path) });
  }
  checkTogether(found, opensearchPluginHost);
  return Promise.all(
    found.map(async ({ path, descriptor: { name, version, folder } }): Promise<PluginRequest> => {
      const sha256 = await hashOf(path);
      return { kind: "plugin", name, version, sha256, file: path, path: `${opensearchHome}/plugins/${folder}` };
    }),
  );
}

async function checked(file: string, path: string): Promise<PluginDescriptor> {
  try {
    const { size } = await requireFile(path);
    if (size > artifactMaxBytes) throw new PluginFault(`it has ${size} bytes; the limit is ${artifactMaxBytes}`);
    const zip = await openZip(path);
    try {
      const content = await zip.read(checkEntries(zip.entries), descriptorMaxBytes);
      return parseDescriptor(content.toString("utf8"), opensearchPluginHost.version);
    } finally {
      await zip.close();
    }
  } catch (error) {
    if (!(error instanceof PluginFault) && !(error instanceof ZipFault)) throw error;
    throw new PluginFault(`${file}: ${error.message}`, { cause: error });
  }
}

/** A link is refused: it could name another file after the check. */
async function requireFile(path: string): Promise<{ readonly size: number }> {
  const facts = await lstat(path);
  if (!facts.isFile()) throw new PluginFault("it is no regular file");
  return facts;
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

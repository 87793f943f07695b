import { lstat, readdir } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import type { PluginRequest } from "./artifact.ts";
import { artifactMaxBytes, hashOf } from "./artifact-archive.ts";
import {
  checkEntries,
  checkTogether,
  descriptorMaxBytes,
  entriesMax,
  type PluginDescriptor,
  PluginFault,
  parseDescriptor,
} from "./opensearch-plugin.ts";
import type { Addition, AdditionSource } from "./addition-source.ts";
import { opensearchHome, opensearchPluginHost } from "./recipes/opensearch.ts";
import { openZip, ZipFault } from "./zip-file.ts";

const filesMax = 100;

/** The zips of a directory, in the order of their names. */
export const opensearchPlugins = {
  variable: "HOLDFAST_OPENSEARCH_PLUGINS",
  description:
    "Directory with zips of plugins that this host's OpenSearch images get, an absolute path; the operator trusts them",
  async read(directory): Promise<Addition> {
    try {
      return { artifacts: await pluginsIn(directory) };
    } catch (error) {
      const reason = error instanceof PluginFault ? error.message : fileReason(error);
      return { artifacts: [], fault: `${opensearchPlugins.variable}: ${reason}` };
    }
  },
} as const satisfies AdditionSource;

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
    const zip = await openZip(path, entriesMax);
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

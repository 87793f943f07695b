import { lstat, readdir } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import type { Addition, AdditionSource } from "./addition-source.ts";
import type { DebRequest } from "./artifact.ts";
import { artifactMaxBytes, hashOf } from "./artifact-archive.ts";
import { checkDeb, DebFault } from "./deb-file.ts";
import { mongodPackage, mongodPath, mongodSeries } from "./recipes/mongodb-server.ts";

const variable = "HOLDFAST_MONGOD_PACKAGES";

/** Debian's names of the architectures that the server exists for. */
const architectures: Readonly<Partial<Record<NodeJS.Architecture, string>>> = { x64: "amd64", arm64: "arm64" };

/** The server's package in a directory of its makers' Debian packages. The other packages are ignored. */
export const mongodbPackages = {
  variable,
  description:
    "Directory with the Debian packages of MongoDB 8.0, an absolute path; the operator has them from MongoDB, and trusts them",
  missing: `${variable} is empty: no registry has MongoDB's own server, so the operator supplies its package`,
  async read(directory): Promise<Addition> {
    try {
      return { artifacts: [await serverIn(directory)] };
    } catch (error) {
      return { artifacts: [], fault: `${variable}: ${reasonOf(error)}` };
    }
  },
} as const satisfies AdditionSource;

/** An error of the file system without the paths of the host, which users of the catalog must not see. */
function reasonOf(error: unknown): string {
  if (error instanceof DebFault) return error.message;
  if (!(error instanceof Error) || !("code" in error)) throw error;
  return `the directory or a file in it cannot be read (${String(error.code)}): correct it, and start again`;
}

async function serverIn(directory: string): Promise<DebRequest> {
  if (!isAbsolute(directory)) throw new DebFault("the directory is not an absolute path");
  const architecture = architectures[process.arch] ?? process.arch;
  const names = (await readdir(directory)).filter((each) => each.startsWith(`${mongodPackage}_`)).sort();
  const [name, second] = names.filter((each) => each.endsWith(`_${architecture}.deb`));
  const requested = `${mongodPackage}_${mongodSeries}.N_${architecture}.deb`;
  if (name === undefined) throw new DebFault(`the directory has no ${requested}`);
  if (second !== undefined) throw new DebFault(`the directory has both ${name} and ${second}: remove one of them`);
  const version = name.slice(mongodPackage.length + 1, -`_${architecture}.deb`.length);
  if (!/^8\.0\.\d{1,4}$/.test(version)) throw new DebFault(`${name}: use ${requested}`);
  const file = join(directory, name);
  try {
    const facts = await lstat(file);
    // A link could name another file after the check.
    if (!facts.isFile()) throw new DebFault("it is no regular file");
    if (facts.size > artifactMaxBytes)
      throw new DebFault(`it has ${facts.size} bytes; the limit is ${artifactMaxBytes}`);
    await checkDeb(file);
  } catch (error) {
    if (error instanceof DebFault) throw new DebFault(`${name}: ${error.message}`, { cause: error });
    throw error;
  }
  const sha256 = await hashOf(file);
  return { kind: "deb", name: mongodPackage, version, sha256, file, program: "usr/bin/mongod", path: mongodPath };
}

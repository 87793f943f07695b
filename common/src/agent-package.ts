import { createHash } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";

/** Which agent it is: a release for people, and a digest that no two states of the code share. */
export interface AgentVersion {
  readonly release: string;
  /** 32 hex digits over the release and all files. */
  readonly digest: string;
}

/** An agent's code as it travels to machines. */
export interface AgentPackage extends AgentVersion {
  readonly files: readonly CodeFile[];
}

export interface CodeFile {
  readonly name: string;
  readonly text: string;
}

/** Where the code says of itself which it is. */
export const versionFile = "version.json";
/** What is run of it. */
export const mainFile = "main.mjs";

const nameOfCode = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.mjs$/;
const largestBytes = 64 << 20;

/** Is it a file of the code, rather than what came to lie beside it? */
export function isCodeFile(name: string): boolean {
  return nameOfCode.test(name);
}

export function digestOfCode(release: string, files: readonly CodeFile[]): string {
  const hash = createHash("sha256").update(JSON.stringify(release));
  for (const { name, text } of [...files].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    hash.update(JSON.stringify([name, text]));
  }
  return hash.digest("hex").slice(0, 32);
}

export function packAgent(agent: AgentPackage): Buffer {
  return gzipSync(JSON.stringify(agent));
}

/** Throws for bytes that are no package, or one whose digest is not that of its files. */
export function unpackAgent(bytes: Uint8Array): AgentPackage {
  const text = gunzipSync(bytes, { maxOutputLength: largestBytes }).toString("utf8");
  const { release, digest, files } = JSON.parse(text) as AgentPackage;
  if (!files.every(({ name }) => isCodeFile(name)) || !files.some(({ name }) => name === mainFile)) {
    throw new Error("the package is not an agent's code");
  }
  if (digestOfCode(release, files) !== digest) throw new Error("the package's digest is not that of its files");
  return { release, digest, files };
}

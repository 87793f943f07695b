import { createHash } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";

/** Identity of an agent's code: the release name for users, and a digest that is unique for each state of the code. */
export interface AgentVersion {
  readonly release: string;
  /** 32 hex digits over the release and all files. */
  readonly digest: string;
}

/** An agent's code as controllers send it to machines: gzip of this object's JSON. */
export interface AgentPackage extends AgentVersion {
  readonly files: readonly CodeFile[];
}

export interface CodeFile {
  readonly name: string;
  readonly text: string;
}

/** File in the package that contains the AgentVersion of the code. */
export const versionFile = "version.json";
/**
 * Patterns of the files below the checkout that determine an agent's bundle. None is in node_modules, whose packages
 * link to each other: the lock file names their versions.
 */
export const agentSources = [
  "agent/*.{ts,sh}",
  "agent/{keeper,src}/**/*.{ts,sh}",
  "{common,mtls,tds,opmsg}/src/**/*.ts",
  "proto/gen/**/*.ts",
  "{package.json,pnpm-lock.yaml}",
];
/** Entry point of the agent. */
export const mainFile = "main.mjs";

const nameOfCode = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.mjs$/;
const maxTextBytes = 64 << 20;

/** True if the name is one of a code file; false for any other file in the directory. */
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

/** Throws if the bytes are not a package, or if the digest does not match the files. */
export function unpackAgent(bytes: Uint8Array): AgentPackage {
  const text = gunzipSync(bytes, { maxOutputLength: maxTextBytes }).toString("utf8");
  const { release, digest, files } = JSON.parse(text) as AgentPackage;
  if (!files.every(({ name }) => isCodeFile(name)) || !files.some(({ name }) => name === mainFile)) {
    throw new Error("the package does not contain an agent");
  }
  if (digestOfCode(release, files) !== digest) throw new Error("the package's digest does not match its files");
  return { release, digest, files };
}

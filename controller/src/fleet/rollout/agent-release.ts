import { spawn } from "node:child_process";
import { once } from "node:events";
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setPriority } from "node:os";
import { join } from "node:path";
import {
  agentSources,
  type AgentVersion,
  digestOfCode,
  isCodeFile,
  packAgent,
  versionFile,
} from "@holdfast/common/agent-package.ts";
import { digestOfFiles, storedBuild } from "@holdfast/common/stored-build.ts";

/** The release of the agent that a controller ships. */
export interface AgentRelease extends AgentVersion {
  /** The package that machines download. */
  readonly bytes: Buffer;
  /** SHA-256 of the package, in hex. */
  readonly sha256: string;
}

export interface AgentReleaseDeps {
  readonly checkout: string;
  /** Directory with a bundle built by agent/bundle.ts; empty: bundle the agent of the checkout. */
  readonly bundleDirectory: string;
}

const lowestPriority = 19;

/**
 * Bundles the agent of the checkout, or reads an existing bundle: that of the setting, or one of the same code in the
 * checkout's `agent/dist`. Throws if the recorded digest does not match the files.
 */
export async function createAgentRelease(
  { checkout, bundleDirectory }: AgentReleaseDeps,
  signal: AbortSignal,
): Promise<AgentRelease> {
  if (bundleDirectory !== "") return readRelease(bundleDirectory);
  const build = (directory: string) => bundleAgent(checkout, directory, signal);
  const digest = digestOfFiles(checkout, agentSources, [process.version]);
  return storedBuild(join(checkout, "agent", "dist"), digest, { build, read: readRelease });
}

async function bundleAgent(checkout: string, directory: string, signal: AbortSignal): Promise<void> {
  const child = spawn(process.execPath, [join(checkout, "agent", "bundle.ts"), directory], {
    stdio: ["ignore", "ignore", "pipe"],
    signal,
  });
  let errorOutput = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errorOutput = (errorOutput + text).slice(-2_000)));
  // Bundling is not urgent, and must not slow the controller down.
  if (child.pid !== undefined) setPriority(child.pid, lowestPriority);
  const [status] = (await once(child, "close")) as [number | null];
  if (status !== 0) throw new Error(`the agent was not bundled: ${errorOutput}`);
}

async function readRelease(directory: string): Promise<AgentRelease> {
  const { release, digest } = JSON.parse(await readFile(join(directory, versionFile), "utf8")) as AgentVersion;
  const names = (await readdir(directory)).filter(isCodeFile).sort();
  const files = await Promise.all(
    names.map(async (name) => ({ name, text: await readFile(join(directory, name), "utf8") })),
  );
  if (digestOfCode(release, files) !== digest) throw new Error(`the digest in ${directory} does not match its files`);
  const bytes = packAgent({ release, digest, files });
  return { release, digest, bytes, sha256: createHash("sha256").update(bytes).digest("hex") };
}

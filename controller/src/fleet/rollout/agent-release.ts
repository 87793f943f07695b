import { spawn } from "node:child_process";
import { once } from "node:events";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentVersion, digestOfCode, isCodeFile, packAgent, versionFile } from "@holdfast/common/agent-package.ts";

/** The agent that a controller ships. */
export interface AgentRelease extends AgentVersion {
  /** Its package, as machines get it. */
  readonly bytes: Buffer;
  /** Of the package, hex. */
  readonly sha256: string;
}

export interface AgentReleaseDeps {
  readonly checkout: string;
  /** Directory that bundle.ts made elsewhere; empty to bundle what is in the checkout. */
  readonly made: string;
}

const lowestPriority = 19;

/** Bundles the agent, or takes the bundle that is there. Throws for one whose digest is not that of its files. */
export async function makeAgentRelease(
  { checkout, made }: AgentReleaseDeps,
  signal: AbortSignal,
): Promise<AgentRelease> {
  if (made !== "") return readRelease(made);
  const directory = await mkdtemp(join(tmpdir(), "holdfast-agent-"));
  try {
    const child = spawn(process.execPath, [join(checkout, "agent", "bundle.ts"), directory], {
      stdio: ["ignore", "ignore", "pipe"],
      signal,
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-2_000)));
    // Nobody waits for it.
    if (child.pid !== undefined) setPriority(child.pid, lowestPriority);
    const [status] = (await once(child, "close")) as [number | null];
    if (status !== 0) throw new Error(`the agent was not bundled: ${said}`);
    return await readRelease(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function readRelease(directory: string): Promise<AgentRelease> {
  const { release, digest } = JSON.parse(await readFile(join(directory, versionFile), "utf8")) as AgentVersion;
  const names = (await readdir(directory)).filter(isCodeFile).sort();
  const files = await Promise.all(
    names.map(async (name) => ({ name, text: await readFile(join(directory, name), "utf8") })),
  );
  if (digestOfCode(release, files) !== digest) throw new Error(`${directory} is not the agent that it says it is`);
  const bytes = packAgent({ release, digest, files });
  return { release, digest, bytes, sha256: createHash("sha256").update(bytes).digest("hex") };
}

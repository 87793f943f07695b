import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentVersion, digestOfCode, isCodeFile, mainFile, packAgent } from "@holdfast/common/agent-package.ts";

/** A package of this checkout's agent, or of an edited one. */
export interface AgentCode extends AgentVersion {
  readonly bytes: Buffer;
  readonly sha256: string;
}

/** Writes agent and keeper to this directory, in few files, as machines get them. */
export function bundleAgentTo(directory: string): void {
  execFileSync(process.execPath, [join(import.meta.dirname, "../../../agent/bundle.ts"), directory]);
}

/** Bundles the agent once. The returned function packs it as a release, with `edit` applied to each file. */
export function bundleAgent(): (release: string, edit?: (text: string, isMain: boolean) => string) => AgentCode {
  const directory = mkdtempSync(join(tmpdir(), "agent-code-"));
  bundleAgentTo(directory);
  const bundled = readdirSync(directory)
    .filter(isCodeFile)
    .map((name) => ({ name, text: readFileSync(join(directory, name), "utf8") }));
  rmSync(directory, { recursive: true });
  return (release, edit = (text) => text) => {
    const files = bundled.map(({ name, text }) => ({ name, text: edit(text, name === mainFile) }));
    const digest = digestOfCode(release, files);
    const bytes = packAgent({ release, digest, files });
    return { release, digest, bytes, sha256: createHash("sha256").update(bytes).digest("hex") };
  };
}

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unpackAgent, versionFile } from "@holdfast/common/agent-package.ts";
import { bundleAgent } from "../machines/agent-code.ts";

/** Directory for HOLDFAST_AGENT_CODE: a starting controller offers the release that it finds there. */
export interface ReleaseDirectory {
  readonly directory: string;
  /** Stores this checkout's agent as a release of that name, in place of the last one; returns its digest. */
  put(release: string, edit?: (text: string, isMain: boolean) => string): string;
  remove(): void;
}

export function createReleaseDirectory(): ReleaseDirectory {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-release-"));
  let codeOf: ReturnType<typeof bundleAgent> | undefined;
  return {
    directory,
    put(release, edit) {
      codeOf ??= bundleAgent();
      const { digest, bytes } = codeOf(release, edit);
      rmSync(directory, { recursive: true });
      mkdirSync(directory);
      for (const { name, text } of unpackAgent(bytes).files) writeFileSync(join(directory, name), text);
      writeFileSync(join(directory, versionFile), JSON.stringify({ release, digest }));
      return digest;
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

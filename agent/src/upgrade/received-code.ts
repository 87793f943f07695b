import { chmod, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type AgentPackage,
  type AgentVersion,
  digestOfCode,
  isCodeFile,
  mainFile,
  versionFile,
} from "@holdfast/common/agent-package.ts";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { readIfExists } from "@holdfast/common/durable-file.ts";

/** The release that this agent runs, and the releases that controllers sent to the machine's disk. */
export interface ReceivedCode {
  /** Release of this agent; its digest is empty for a checkout. */
  readonly ownVersion: AgentVersion;
  /** Returns the main file if the stored code matches the digest; undefined otherwise. */
  find(digest: string): Promise<string | undefined>;
  /** Writes the code to disk and returns its main file. After a failure no file remains. */
  store(code: AgentPackage): Promise<string>;
  /** Removes every release but the running one and this one. */
  removeOthers(digest: string): Promise<void>;
}

/** Jobs run some of the code as the engine's user, which is in the agent's group. */
async function shareWithEngine(directory: string, home: string): Promise<void> {
  if (dirname(home) !== directory) return;
  await chmod(directory, 0o710);
  await chmod(home, 0o750);
  for (const name of (await readdir(home)).filter(isCodeFile)) await chmod(join(home, name), 0o640);
}

/** `main` is the main file of this process. */
export async function openReceivedCode(stateDir: string, main: string): Promise<ReceivedCode> {
  const directory = join(stateDir, "code");
  const versionText = await readIfExists(join(dirname(main), versionFile));
  const ownVersion: AgentVersion =
    versionText === undefined
      ? { release: "checkout", digest: "" }
      : (JSON.parse(versionText.toString("utf8")) as AgentVersion);

  async function write(path: string, text: string): Promise<void> {
    const file = await open(path, "w", 0o640);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  await shareWithEngine(directory, dirname(main));
  return {
    ownVersion,
    async find(digest) {
      const home = join(directory, digest);
      const version = await readIfExists(join(home, versionFile));
      if (version === undefined) return undefined;
      const { release } = JSON.parse(version.toString("utf8")) as AgentVersion;
      const names = (await readdir(home)).filter(isCodeFile);
      const files = await Promise.all(
        names.map(async (name) => ({ name, text: await readFile(join(home, name), "utf8") })),
      );
      return digestOfCode(release, files) === digest ? join(home, mainFile) : undefined;
    },
    async store({ release, digest, files }) {
      const home = join(directory, digest);
      const draft = join(directory, "new");
      await rm(draft, { recursive: true, force: true });
      await rm(home, { recursive: true, force: true });
      try {
        await mkdir(directory, { recursive: true });
        await mkdir(draft, { mode: 0o750 });
        for (const { name, text } of files) await write(join(draft, name), text);
        await write(join(draft, versionFile), JSON.stringify({ release, digest }));
        await syncPath(draft);
        await rename(draft, home);
      } catch (error) {
        await rm(draft, { recursive: true, force: true });
        throw error;
      }
      await syncPath(directory);
      return join(home, mainFile);
    },
    async removeOthers(digest) {
      const names = await readdir(directory).catch(() => []);
      for (const name of names) {
        if (name === digest || join(directory, name) === dirname(main)) continue;
        await rm(join(directory, name), { recursive: true, force: true });
      }
    },
  };
}

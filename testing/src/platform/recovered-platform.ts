import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect } from "vitest";
import { createCommandLine } from "./command-line.ts";
import { type Platform, startPlatform } from "./platform.ts";

interface RecoveredRow {
  readonly name: string;
  readonly outcome: string;
  readonly backupId?: string;
  readonly replayMemoryGb?: number;
}

/** An installation that was recovered from the object store of another one. */
export interface RecoveredPlatform {
  readonly platform: Platform;
  /** Services that the command printed. */
  readonly printed: readonly RecoveredRow[];
  /** Removes the platform and its object store. */
  remove(): Promise<void>;
}

/**
 * Kills an installation and removes all of it except its object store and its master key; then recovers another one
 * from these, by the operators' command, and starts it. The command runs twice: the second run finds everything in
 * place.
 */
export async function recoverPlatform(
  lost: Platform,
  environment: Readonly<Record<string, string>>,
): Promise<RecoveredPlatform> {
  const savedDirectory = mkdtempSync(join(tmpdir(), "holdfast-left-"));
  const removeSaved = () => rmSync(savedDirectory, { recursive: true, force: true });
  try {
    await lost.kill9();
    cpSync(join(lost.directory, "objects"), join(savedDirectory, "objects"), { recursive: true });
    cpSync(join(lost.directory, "keys", "master-key.json"), join(savedDirectory, "master-key.json"));
    await lost.remove();
    const directory = mkdtempSync(join(tmpdir(), "holdfast-found-"));
    const cli = createCommandLine({ HOLDFAST_DATA: directory });
    const objects = pathToFileURL(join(savedDirectory, "objects")).href;
    const words = [
      "admin",
      "recover",
      "--objects",
      objects,
      "--master-key",
      join(savedDirectory, "master-key.json"),
      "--yes",
    ];
    const ran = await cli.run([...words, "--output", "json"]);
    expect(ran, ran.stderr).toMatchObject({ code: 0 });
    const secondRun = await cli.run([...words, "--output", "json"]);
    expect(secondRun, secondRun.stderr).toMatchObject({ code: 0 });
    expect(secondRun.stdout).toContain("the service exists already");
    cli.remove();
    const printed = JSON.parse(ran.stdout) as RecoveredRow[];
    const platform = await startPlatform({ directory, environment });
    const remove = async () => {
      await platform.remove();
      removeSaved();
    };
    return { platform, printed, remove };
  } catch (error) {
    removeSaved();
    throw error;
  }
}

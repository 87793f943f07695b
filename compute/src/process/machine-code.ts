import { constants, existsSync } from "node:fs";
import { chmod, cp, mkdir, readdir, rename, rm, symlink, stat } from "node:fs/promises";
import { join, basename, dirname } from "node:path";
import { agentSources } from "@holdfast/common/agent-package.ts";
import type { Log } from "@holdfast/common/log.ts";
import { digestOfFiles, storedBuild } from "@holdfast/common/stored-build.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { mountedDirectories } from "@holdfast/image/sweep-images.ts";
import { readIfExists } from "../local/atomic-file.ts";
import { type Layout, unfinishedPaths } from "../local/machine-paths.ts";
import { machineCodeDirectory, type MachineRuntime } from "../local/machine-runtime.ts";
import { runMachineProgram } from "./machine-launch.ts";
import { stopMachine } from "./stop-machine.ts";

/**
 * Bundled and compiled keeper, agent and front ends, built once and shared by all machines: loading and compiling
 * their modules is most of a machine's start. Each state of the code has its own directory, so nothing changes below a
 * running machine.
 */
export interface MachineCode {
  /** The code directory, readable by this user of a machine; undefined until it is built. */
  openTo(uid: number): Promise<string | undefined>;
  /**
   * Copies the code if another installation of this host has built it, or builds it in a separate machine, because the
   * compile cache depends on paths. Removes earlier states of the code that no machine runs from.
   */
  make(imageRoot: string, signal: AbortSignal): Promise<void>;
}

export interface MachineCodeDeps {
  readonly layout: Layout;
  readonly runtime: MachineRuntime;
  /** Directory of the host with the code that its installations have built. */
  readonly stored: string;
  readonly log: Log;
  /** True if each start uses the newest code: earlier states without a mount are then unused. */
  readonly removesOld?: boolean;
}

/** Node's compile cache has a directory for each user; the one that root compiled serves all. */
const compiledByRoot = /-0$/;

const draftSuffix = ".draft";
/** Number of states of the code that stay in the host's directory: those of its checkouts. */
const maxStored = 8;

export function createMachineCode({ layout, runtime, stored, log, removesOld = false }: MachineCodeDeps): MachineCode {
  let digestOfCode: string | undefined;
  function located() {
    const digest = (digestOfCode ??= digestOf(runtime));
    return { digest, directory: join(layout.code, digest) };
  }

  async function build(built: string, imageRoot: string, signal: AbortSignal): Promise<void> {
    const paths = unfinishedPaths(join(layout.preparedDisks, "code"), 0);
    await stopMachine(paths, 0);
    await rm(paths.directory, { recursive: true, force: true });
    for (const each of [paths.root, paths.state, paths.dataDirectory]) {
      await mkdir(each, { recursive: true, mode: 0o755 });
    }
    const code = { directory: built, writable: true };
    const { isolation } = runtime.abilities;
    const root = {
      paths,
      image: imageRoot,
      runtime,
      disk: "directory",
      hasUser: false,
      code,
      groups: undefined,
    } as const;
    const command = ["/bin/sh", "/holdfast/checkout/agent/make-code.sh", "/holdfast/node/node", machineCodeDirectory];
    const status = await runMachineProgram({ paths, isolation, root, uid: null, command }, signal, log);
    const output = status === 0 ? "" : await readIfExists(paths.log);
    await rm(paths.directory, { recursive: true, force: true });
    if (status !== 0) throw new Error(`the build ended with ${status}: ${output?.slice(-2_000)}`);
    for (const name of await readdir(built, { recursive: true })) await chmod(join(built, name), 0o755);
  }

  async function copyFrom(built: string): Promise<string> {
    const { digest, directory } = located();
    const draft = join(layout.code, `${digest}${draftSuffix}`);
    await rm(draft, { recursive: true, force: true });
    await cp(built, draft, { recursive: true, errorOnExist: true, mode: constants.COPYFILE_FICLONE });
    await chmod(draft, 0o755);
    await rename(draft, directory);
    return directory;
  }

  return {
    async openTo(uid) {
      const { directory } = located();
      const compiled = join(directory, "compile-cache");
      if (!existsSync(directory)) return undefined;
      const names = (await readdir(compiled)).filter((name) => compiledByRoot.test(name));
      for (const name of names) {
        await symlink(name, join(compiled, name.replace(compiledByRoot, `-${uid}`))).catch((error: unknown) => {
          if (!hasCode(error, "EEXIST")) throw error;
        });
      }
      return directory;
    },
    async make(imageRoot, signal) {
      const { digest, directory } = located();
      if (!existsSync(directory)) {
        await mkdir(layout.code, { recursive: true, mode: 0o755 });
        const steps = { build: (built: string) => build(built, imageRoot, signal), read: copyFrom };
        await storedBuild(stored, digest, steps, maxStored).catch((error: unknown) =>
          log.warn("machine code not built", { error: String(error) }),
        );
      }
      const removed = removesOld && existsSync(directory) ? await removeOldCode(directory, Date.now()) : [];
      if (removed.length > 0) log.info("old machine code removed", { removed });
    },
  };
}

/** Directory of the code that the host's installations have built. */
export function storedCode(environment: Readonly<Record<string, string | undefined>>): string {
  return join(cacheDirectory(environment), "machine-code");
}

/** Digest of all that affects the code or its compilation. */
function digestOf({ checkout, node }: MachineRuntime): string {
  return digestOfFiles(checkout, agentSources, [process.version, node]);
}

/** Maximum time from a machine's choice of its code to the mount. */
const mountTimeoutMs = 600_000;
const removalSuffix = ".going";

/**
 * Removes earlier states of the machines' code that no running machine has mounted. Returns the names of the removed
 * ones.
 */
export async function removeOldCode(current: string, nowMs: number): Promise<string[]> {
  const parent = dirname(current);
  const names = (await readdir(parent).catch(() => [])).filter((name) => name !== basename(current));
  if (names.length === 0) return [];
  const mounted = await mountedDirectories();
  if (mounted === undefined) return [];
  const removed: string[] = [];
  for (const name of names) {
    const path = join(parent, name);
    // A mount's root is a path within its file system, which may lack leading directories of this host's path.
    const suffix = `/${basename(parent)}/${name}`;
    if ([...mounted].some((root) => root.endsWith(suffix))) continue;
    if (!name.endsWith(removalSuffix)) {
      if (nowMs - (await stat(path)).mtimeMs < mountTimeoutMs) continue;
      // Renamed before the removal: a machine finds the complete directory or none.
      await rename(path, path + removalSuffix);
    }
    await rm(name.endsWith(removalSuffix) ? path : path + removalSuffix, { recursive: true, force: true });
    removed.push(name);
  }
  return removed;
}

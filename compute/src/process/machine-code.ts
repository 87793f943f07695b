import { createHash } from "node:crypto";
import { existsSync, globSync, readFileSync } from "node:fs";
import { chmod, mkdir, readdir, rename, rm, symlink, stat } from "node:fs/promises";
import { join, basename, dirname } from "node:path";
import type { Log } from "@holdfast/common/log.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
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
   * Builds the code if it is missing, in a separate machine, because the compile cache depends on paths. Removes
   * earlier states of the code that no machine runs from.
   */
  make(imageRoot: string, signal: AbortSignal): Promise<void>;
}

export interface MachineCodeDeps {
  readonly layout: Layout;
  readonly runtime: MachineRuntime;
  readonly log: Log;
  /** True if each start uses the newest code: earlier states without a mount are then unused. */
  readonly removesOld?: boolean;
}

/** Source files of the code, below the checkout; none is in node_modules, whose packages link to each other. */
const sources = [
  "agent/*.{ts,sh}",
  "agent/{keeper,src}/**/*.{ts,sh}",
  "{common,mtls,tds}/src/**/*.ts",
  "proto/gen/**/*.ts",
];
/** Node's compile cache has a directory for each user; the one that root compiled serves all. */
const compiledByRoot = /-0$/;

export function createMachineCode({ layout, runtime, log, removesOld = false }: MachineCodeDeps): MachineCode {
  const directory = join(layout.code, digestOf(runtime));
  const compiled = join(directory, "compile-cache");

  async function build(imageRoot: string, signal: AbortSignal): Promise<void> {
    const paths = unfinishedPaths(join(layout.preparedDisks, "code"), 0);
    const draft = join(paths.directory, "code");
    await stopMachine(paths, 0);
    await rm(paths.directory, { recursive: true, force: true });
    for (const each of [paths.root, paths.state, paths.dataDirectory, draft, layout.code]) {
      await mkdir(each, { recursive: true, mode: 0o755 });
    }
    const code = { directory: draft, writable: true };
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
    if (status === 0) {
      for (const name of await readdir(draft, { recursive: true })) await chmod(join(draft, name), 0o755);
      await rename(draft, directory);
    } else {
      log.warn("machine code not built", { status, output: (await readIfExists(paths.log))?.slice(-2_000) });
    }
    await rm(paths.directory, { recursive: true, force: true });
  }

  return {
    async openTo(uid) {
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
      if (!existsSync(directory)) await build(imageRoot, signal);
      const removed = removesOld && existsSync(directory) ? await removeOldCode(directory, Date.now()) : [];
      if (removed.length > 0) log.info("old machine code removed", { removed });
    },
  };
}

/** Digest of all that affects the code or its compilation. */
function digestOf({ checkout, node }: MachineRuntime): string {
  const hash = createHash("sha256").update(`${process.version} ${node}`);
  hash.update(readFileSync(join(checkout, "pnpm-lock.yaml")));
  const { version } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as { version: string };
  hash.update(version);
  for (const name of globSync(sources, { cwd: checkout }).toSorted()) {
    hash.update(name).update(readFileSync(join(checkout, name)));
  }
  return hash.digest("hex").slice(0, 16);
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

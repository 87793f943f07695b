import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, readdir, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "@holdfast/common/log.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readIfThere } from "../local/atomic-file.ts";
import type { Layout } from "../local/machine-paths.ts";
import { removeOldCode } from "./old-code.ts";
import { codeInside, type Place } from "../local/place.ts";
import { makingPaths } from "../local/spare-directory.ts";
import { runMachineProgram } from "./machine-program.ts";
import { stopMachine } from "./stop-machine.ts";

/**
 * Keeper and agent bundled and compiled, made once and read by all machines: to load and compile their modules is most of
 * a machine's start. One directory for each state of the code, so nothing that a running machine sees ever changes.
 */
export interface MachineCode {
  /** Its directory, readable by programs of this user of a machine; undefined until it is made. */
  openTo(uid: number): Promise<string | undefined>;
  /**
   * Makes it if it is not there, in a machine of its own: the paths of the code are part of what is compiled. Removes what
   * earlier states of the code left and no machine runs from.
   */
  make(imageRoot: string, signal: AbortSignal): Promise<void>;
}

export interface MachineCodeDeps {
  readonly layout: Layout;
  readonly place: Place;
  readonly log: Log;
  /** Machines get the newest at each start: what none that runs has mounted is of no use to any. */
  readonly removesOld?: boolean;
}

/** What the code is made of, below the checkout. */
const sources = ["agent", "common/src", "proto/gen"];
/** Node keeps what it compiled apart for each user; what root compiled is right for all. */
const compiledByRoot = /-0$/;

export function createMachineCode({ layout, place, log, removesOld = false }: MachineCodeDeps): MachineCode {
  const directory = join(layout.code, digestOf(place));
  const compiled = join(directory, "compile-cache");

  async function build(imageRoot: string, signal: AbortSignal): Promise<void> {
    const paths = makingPaths(join(layout.spares, "code"), 0);
    const making = join(paths.directory, "code");
    await stopMachine(paths, 0);
    await rm(paths.directory, { recursive: true, force: true });
    for (const each of [paths.root, paths.state, paths.dataDirectory, making, layout.code]) {
      await mkdir(each, { recursive: true, mode: 0o755 });
    }
    const code = { directory: making, writable: true };
    const { isolation } = place.abilities;
    const root = {
      paths,
      image: imageRoot,
      place,
      disk: "directory",
      hasUser: false,
      code,
      groups: undefined,
    } as const;
    const command = ["/bin/sh", "/holdfast/checkout/agent/make-code.sh", "/holdfast/node/node", codeInside];
    const status = await runMachineProgram({ paths, isolation, root, uid: null, command }, signal, log);
    if (status === 0) {
      for (const name of await readdir(making, { recursive: true })) await chmod(join(making, name), 0o755);
      await rename(making, directory);
    } else {
      log.warn("code of machines not made", { status, output: (await readIfThere(paths.log))?.slice(-2_000) });
    }
    await rm(paths.directory, { recursive: true, force: true });
  }

  return {
    async openTo(uid) {
      if (!existsSync(directory)) return undefined;
      const made = (await readdir(compiled)).filter((name) => compiledByRoot.test(name));
      for (const name of made) {
        await symlink(name, join(compiled, name.replace(compiledByRoot, `-${uid}`))).catch((error: unknown) => {
          if (!hasCode(error, "EEXIST")) throw error;
        });
      }
      return directory;
    },
    async make(imageRoot, signal) {
      if (!existsSync(directory)) await build(imageRoot, signal);
      const removed = removesOld && existsSync(directory) ? await removeOldCode(directory, Date.now()) : [];
      if (removed.length > 0) log.info("old code of machines removed", { removed });
    },
  };
}

/** Changes with whatever could change the code or what Node makes of it. */
function digestOf({ checkout, node }: Place): string {
  const hash = createHash("sha256").update(`${process.version} ${node}`);
  hash.update(readFileSync(join(checkout, "pnpm-lock.yaml")));
  const { version } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as { version: string };
  hash.update(version);
  for (const source of sources) {
    const names = readdirSync(join(checkout, source), { recursive: true, encoding: "utf8" }).sort();
    for (const name of names) {
      if (!/\.(ts|sh)$/.test(name) || name.includes("node_modules")) continue;
      hash.update(name).update(readFileSync(join(checkout, source, name)));
    }
  }
  return hash.digest("hex").slice(0, 16);
}

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory } from "@holdfast/image/node-image.ts";

/** A wall clock for one process that the test sets; the monotonic clock of the process remains the kernel's. */
export interface FakeClock {
  /** Environment that the process is started with. */
  readonly environment: Readonly<Record<string, string>>;
  /**
   * Sets the process's wall clock ahead of the true one by this number of seconds, or back by a negative number.
   */
  step(seconds: number): void;
}

/** Path of libfaketime: the host's, or one that apt downloaded into the cache. Undefined where neither is available. */
export function findFakeClockLibrary(): string | undefined {
  const hosts = "/usr/lib";
  const files = existsSync(hosts) ? readdirSync(hosts).map((name) => join(hosts, name, "faketime")) : [];
  const cached = join(cacheDirectory(process.env), "libfaketime");
  return [...files, cached].map(libraryIn).find((path) => path !== undefined) ?? download(cached);
}

function libraryIn(directory: string): string | undefined {
  const path = join(directory, "libfaketimeMT.so.1");
  return existsSync(path) ? path : undefined;
}

function download(directory: string): string | undefined {
  const parent = cacheDirectory(process.env);
  mkdirSync(parent, { recursive: true });
  const draft = mkdtempSync(join(parent, "libfaketime-"));
  const run = (command: string, ...args: string[]) => spawnSync(command, args, { cwd: draft }).status === 0;
  try {
    if (!run("apt-get", "download", "libfaketime")) return undefined;
    const [file] = readdirSync(draft).filter((name) => name.endsWith(".deb"));
    if (file === undefined || !run("dpkg-deb", "--extract", file, "tree")) return undefined;
    const unpacked = readdirSync(join(draft, "tree"), { recursive: true, encoding: "utf8" });
    const library = unpacked.find((name) => name.endsWith("/libfaketimeMT.so.1"));
    if (library === undefined) return undefined;
    if (!existsSync(directory)) renameSync(join(draft, "tree", library, ".."), directory);
    return libraryIn(directory);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** `file` is where the process reads its offset. */
export function createFakeClock(library: string, file: string): FakeClock {
  // Atomic: from a half-written file the process would read no time at all.
  const step = (seconds: number) => {
    writeFileSync(`${file}.new`, `${seconds < 0 ? "" : "+"}${seconds}`);
    renameSync(`${file}.new`, file);
  };
  step(0);
  return {
    environment: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    },
    step,
  };
}

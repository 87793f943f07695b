import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { identify, isRunning, type RecordedProcess, signalIfRunning } from "./recorded-process.ts";

/** A process of an installation. */
export interface InstallationProcess {
  readonly process: RecordedProcess;
  /** Data directory of the installation. */
  readonly directory: string;
  /** The machine that the process launched; undefined for a program of the platform. */
  readonly machineId: string | undefined;
}

/** Environment variables of installation programs, with their paths in the data directory; `*` is any name. */
const dataPaths: Readonly<Record<string, readonly string[]>> = {
  HOLDFAST_PROCESS_DIR: ["."],
  HOLDFAST_DNS_DIR: ["dns"],
  HOLDFAST_HOST_STATE_DIR: ["keys/host"],
  MACHINE_DIR: ["machines/*", "spares/*/*"],
};

/** Processes of all installations: of this user, or of all users for root. */
export function installationProcesses(): InstallationProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      const found = readProcess(name);
      const directory = found && directoryOf(found);
      const remaining = directory === undefined ? undefined : identify(Number(name));
      if (found === undefined || directory === undefined || remaining === undefined) return [];
      const machine = found.environment.get("MACHINE_DIR");
      return [{ process: remaining, directory, machineId: machine && basename(machine) }];
    });
}

/** Processes of the installation with exactly this data directory, which may not exist any more. */
export function processesOf(directory: string): InstallationProcess[] {
  return installationProcesses().filter((each) => each.directory === directory);
}

/** Kills the processes, supervisors first; returns the processes that remain after `timeoutMs`. */
export async function endProcesses(
  directory: string,
  { clock, timeoutMs }: { readonly clock: { sleep(ms: number): Promise<void> }; readonly timeoutMs: number },
): Promise<InstallationProcess[]> {
  const pollIntervalMs = 50;
  let remaining = processesOf(directory);
  for (let waitedMs = 0; remaining.length > 0 && waitedMs < timeoutMs; waitedMs += pollIntervalMs) {
    for (const { process: each } of remaining) if (isRunning(each)) signalIfRunning(each.pid, "SIGKILL");
    await clock.sleep(pollIntervalMs);
    remaining = processesOf(directory);
  }
  return remaining;
}

interface Found {
  readonly argv: readonly string[];
  readonly environment: ReadonlyMap<string, string>;
  readonly cwd: string;
}

/** Undefined for a process that has ended, a kernel thread, and another user's process. */
function readProcess(pid: string): Found | undefined {
  try {
    const fieldsOf = (file: string) => readFileSync(`/proc/${pid}/${file}`, "utf8").split("\0");
    const environment = new Map(fieldsOf("environ").map((each) => splitOnce(each)));
    return { argv: fieldsOf("cmdline"), environment, cwd: readlinkSync(`/proc/${pid}/cwd`) };
  } catch {
    return undefined;
  }
}

/** The one data directory that the process names; undefined if it names none, or several. */
function directoryOf(found: Found): string | undefined {
  // A supervisor may have inherited variables of another installation.
  const ofSupervisor = supervisedDirectory(found);
  if (ofSupervisor !== undefined) return ofSupervisor;
  const named = Object.entries(dataPaths).flatMap(([name, patterns]) => {
    const path = found.environment.get(name);
    return path === undefined || path === "" ? [] : patterns.flatMap((pattern) => directoryAbove(path, pattern) ?? []);
  });
  const directories = new Set(named);
  return directories.size === 1 ? named[0] : undefined;
}

/** The directory in which the path has the pattern; undefined if it has another one. */
function directoryAbove(path: string, pattern: string): string | undefined {
  let at = resolve("/", path);
  for (const name of pattern.split("/").toReversed()) {
    if (name === ".") continue;
    if (name !== "*" && basename(at) !== name) return undefined;
    at = dirname(at);
  }
  return at;
}

/** Data directory of a supervisor: in its command line, its environment, or the location of its code. */
function supervisedDirectory({ argv, environment, cwd }: Found): string | undefined {
  const main = argv.findIndex((word) => word.endsWith(join("local", "src", "main.ts")));
  if (main < 0 || !["up", "host"].includes(argv[main + 1] ?? "")) return undefined;
  const checkout = dirname(dirname(dirname(argv[main] ?? "")));
  const named = dataFlag(argv.slice(main)) ?? environment.get("HOLDFAST_DATA") ?? join(checkout, ".holdfast");
  return resolve(cwd, named);
}

function dataFlag(argv: readonly string[]): string | undefined {
  const at = argv.indexOf("--data");
  return at < 0 ? argv.find((word) => word.startsWith("--data="))?.slice("--data=".length) : argv[at + 1];
}

function splitOnce(word: string): [string, string] {
  const at = word.indexOf("=");
  return at < 0 ? [word, ""] : [word.slice(0, at), word.slice(at + 1)];
}

import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { identify, isRunning, type RecordedProcess, signalIfRunning } from "./recorded-process.ts";

/** A process of an installation. */
export interface InstallationProcess {
  readonly process: RecordedProcess;
  /** The machine that the process launched; undefined for a program of the platform. */
  readonly machineId: string | undefined;
}

/** Environment variables of installation programs, with a path in the data directory. */
const installationVariables = ["HOLDFAST_PROCESS_DIR", "HOLDFAST_DNS_DIR", "HOLDFAST_HOST_STATE_DIR", "MACHINE_DIR"];

/**
 * Processes of the installation of a directory, which may not exist any more: of this user, or of all users for root.
 */
export function processesOf(directory: string): InstallationProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      const found = readProcess(name);
      if (found === undefined || !belongsTo(found, directory)) return [];
      const remaining = identify(Number(name));
      const machine = found.environment.get("MACHINE_DIR");
      return remaining === undefined ? [] : [{ process: remaining, machineId: machine && basename(machine) }];
    });
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

function belongsTo({ argv, environment, cwd }: Found, directory: string): boolean {
  if (installationVariables.some((name) => isBelow(environment.get(name), directory))) return true;
  // The supervisor's directory is in its command line, its environment, or the location of its code.
  const main = argv.findIndex((word) => word.endsWith(join("local", "src", "main.ts")));
  if (main < 0 || !["up", "host"].includes(argv[main + 1] ?? "")) return false;
  const checkout = dirname(dirname(dirname(argv[main] ?? "")));
  const named = dataFlag(argv.slice(main)) ?? environment.get("HOLDFAST_DATA") ?? join(checkout, ".holdfast");
  return resolve(cwd, named) === directory;
}

function dataFlag(argv: readonly string[]): string | undefined {
  const at = argv.indexOf("--data");
  return at < 0 ? argv.find((word) => word.startsWith("--data="))?.slice("--data=".length) : argv[at + 1];
}

function isBelow(path: string | undefined, directory: string): boolean {
  return path !== undefined && (path === directory || path.startsWith(directory + sep));
}

function splitOnce(word: string): [string, string] {
  const at = word.indexOf("=");
  return at < 0 ? [word, ""] : [word.slice(0, at), word.slice(at + 1)];
}

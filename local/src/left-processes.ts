import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { identify, isRunning, type ProcessIdentity } from "./process-identity.ts";
import { signalIfThere } from "./signal-if-there.ts";

/** A process that runs for an installation. */
export interface LeftProcess {
  readonly process: ProcessIdentity;
  /** The machine that it is in front of; undefined when it is a program of the platform. */
  readonly machineId: string | undefined;
}

/** Variables that only programs of an installation have, with its directory or one below it. */
const ours = ["HOLDFAST_PROCESS_DIR", "HOLDFAST_DNS_DIR", "HOLDFAST_HOST_STATE_DIR", "MACHINE_DIR"];

/** What runs for the installation of a directory, which may be gone itself; of this user, or of all where this one is root. */
export function processesOf(directory: string): LeftProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      const found = look(name);
      if (found === undefined || !isOf(found, directory)) return [];
      const left = identify(Number(name));
      const machine = found.environment.get("MACHINE_DIR");
      return left === undefined ? [] : [{ process: left, machineId: machine && basename(machine) }];
    });
}

/** Ends them at once, those first that would start others again; answers which are there still after `withinMs`. */
export async function endProcesses(
  directory: string,
  { clock, withinMs }: { readonly clock: { sleep(ms: number): Promise<void> }; readonly withinMs: number },
): Promise<LeftProcess[]> {
  const lookEveryMs = 50;
  let left = processesOf(directory);
  for (let waitedMs = 0; left.length > 0 && waitedMs < withinMs; waitedMs += lookEveryMs) {
    for (const { process: each } of left) if (isRunning(each)) signalIfThere(each.pid, "SIGKILL");
    await clock.sleep(lookEveryMs);
    left = processesOf(directory);
  }
  return left;
}

interface Found {
  readonly argv: readonly string[];
  readonly environment: ReadonlyMap<string, string>;
  readonly cwd: string;
}

/** Undefined for what ended meanwhile, what is the kernel's, and what is not ours to read. */
function look(pid: string): Found | undefined {
  try {
    const words = (file: string) => readFileSync(`/proc/${pid}/${file}`, "utf8").split("\0");
    const environment = new Map(words("environ").map((each) => splitOnce(each)));
    return { argv: words("cmdline"), environment, cwd: readlinkSync(`/proc/${pid}/cwd`) };
  } catch {
    return undefined;
  }
}

function isOf({ argv, environment, cwd }: Found, directory: string): boolean {
  if (ours.some((name) => isBelow(environment.get(name), directory))) return true;
  // What runs the programs knows its directory from the command line, the environment or where its code is.
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

import { readdirSync, readFileSync } from "node:fs";
import { recipeNames, recipes } from "@holdfast/image/catalog.ts";

/** A process of the host, from /proc. */
interface HostProcess {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  readonly cmdline: string;
}

/** Pids of one machine; undefined where it does not run. */
export interface MachineProcesses {
  readonly id: string;
  /** First process that the provider started. */
  readonly launcher: number;
  readonly keeper: number | undefined;
  readonly agent: number | undefined;
  /** More than one during an agent handover. */
  readonly agents: readonly number[];
  /** The engine's own first process. */
  readonly engine: number | undefined;
  /** The T-SQL front end. */
  readonly tds: number | undefined;
  /** The front end of MongoDB's clients, and the processes of FerretDB behind it. */
  readonly opmsg: number | undefined;
  readonly documents: readonly number[];
  /** Jobs that take backups, restore them and archive the log. */
  readonly jobs: readonly number[];
}

/** Every running process of one installation. */
export interface PlatformProcesses {
  readonly controllers: readonly number[];
  readonly etcd: number | undefined;
  readonly history: number | undefined;
  readonly dns: number | undefined;
  /** Signs the users of apps in. */
  readonly issuer: number | undefined;
  /** Serves the objects of a directory. */
  readonly store: number | undefined;
  readonly inference: number | undefined;
  /** The entry to hosted apps. */
  readonly ingress: number | undefined;
  readonly machines: readonly MachineProcesses[];
  /** All processes above with their child processes, and the supervisor. */
  readonly all: readonly number[];
}

/** Debian names the process of an older Valkey after Redis. */
const engineNames = [
  ...recipeNames.flatMap((name) => recipes[name].software.map(({ executable }) => executable)),
  "redis-server",
];

/** Finds processes below the supervisor, and machines by the data directory in their environment. */
export function findProcesses(dataDirectory: string, supervisor: number | undefined): PlatformProcesses {
  const processes = readProcesses();
  const children = Map.groupBy(processes, ({ parent }) => parent);
  const below = (pid: number): HostProcess[] =>
    (children.get(pid) ?? []).flatMap((child) => [child, ...below(child.pid)]);
  const byPid = new Map(processes.map((process) => [process.pid, process]));
  const above = ({ parent }: HostProcess): HostProcess[] => {
    const found = byPid.get(parent);
    return found === undefined ? [] : [found, ...above(found)];
  };
  // Node may name its first thread otherwise, so the name does not help. A launcher's arguments name its later program,
  // so the program itself must be Node.
  const runs =
    (...programs: string[]) =>
    ({ cmdline, parent }: HostProcess) =>
      /(^|\/)node$/.test(cmdline.split("\0")[0] ?? "") &&
      programs.some((program) => cmdline.includes(program)) &&
      // A process that was just forked has its parent's command line until it executes another program.
      byPid.get(parent)?.cmdline !== cmdline;

  // The bundle that a supervisor starts, or the source file.
  const runsProgram = (name: string) => runs(`${name}/src/main.ts`, `/${name}.mjs`);

  const ofMachines = processes.filter(({ pid }) => machineOf(pid, dataDirectory) !== undefined);
  const pidsOfMachines = new Set(ofMachines.map(({ pid }) => pid));
  // The parent of a short-lived process may have ended since, and have no environment any more.
  const launchers = ofMachines.filter((process) => !above(process).some(({ pid }) => pidsOfMachines.has(pid)));
  // A machine is a child of the controller that started it until that one ends; the processes below it are its own.
  const inMachines = new Set(launchers.flatMap(({ pid }) => [pid, ...below(pid).map((process) => process.pid)]));
  const descendants = supervisor === undefined ? [] : below(supervisor);
  const ofSupervisor = descendants.filter(({ pid }) => !inMachines.has(pid));
  const first = (name: string) => ofSupervisor.find((process) => process.name === name)?.pid;

  const machines = launchers.map((launcher): MachineProcesses => {
    const inside = [launcher, ...below(launcher.pid)];
    const agents = inside.filter(runs("agent/src/main.ts", "/main.mjs")).map(({ pid }) => pid);
    return {
      id: machineOf(launcher.pid, dataDirectory) ?? "",
      launcher: launcher.pid,
      keeper: inside.find(runs("keeper/main.ts", "/code/keeper.mjs"))?.pid,
      agent: agents[0],
      agents,
      engine: inside.find(({ name }) => engineNames.includes(name))?.pid,
      tds: inside.find(runs("tds/src/main.ts", "/tds.mjs"))?.pid,
      opmsg: inside.find(runs("opmsg/src/main.ts", "/opmsg.mjs"))?.pid,
      documents: inside.filter(({ name }) => name === "ferretdb").map(({ pid }) => pid),
      jobs: inside.filter(runs("backup/main.ts", "/code/backup.mjs")).map(({ pid }) => pid),
    };
  });
  const all = [...ofSupervisor.map(({ pid }) => pid), ...inMachines];
  return {
    controllers: ofSupervisor.filter(runsProgram("controller")).map(({ pid }) => pid),
    etcd: first("etcd"),
    history: first("postgres"),
    dns: ofSupervisor.find(runsProgram("dns"))?.pid,
    issuer: ofSupervisor.find(runsProgram("issuer"))?.pid,
    store: ofSupervisor.find(runsProgram("store"))?.pid,
    inference: ofSupervisor.find(runsProgram("inference"))?.pid,
    ingress: ofSupervisor.find(runsProgram("ingress"))?.pid,
    machines,
    all: supervisor === undefined ? all : [supervisor, ...all],
  };
}

/** Pids of all descendants of this process. */
export function findBelow(pid: number): number[] {
  const children = Map.groupBy(readProcesses(), ({ parent }) => parent);
  const below = (parent: number): number[] =>
    (children.get(parent) ?? []).flatMap((child) => [child.pid, ...below(child.pid)]);
  return below(pid);
}

/** Sends the signal to a process; false if the process does not exist. */
export function killImmediately(pid: number, signal: NodeJS.Signals = "SIGKILL"): boolean {
  // To the kernel such numbers are groups of processes, the test's own among them.
  if (!(pid > 0)) throw new Error(`there is no process ${pid} to send ${signal} to`);
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

/** A zombie does not count. */
export function isAlive(pid: number): boolean {
  const stat = readOr(`/proc/${pid}/stat`);
  return stat !== "" && !/\) [ZX] /.test(stat);
}

/** Arguments and environment of a process; empty when it has ended. */
export function argumentsAndEnvironment(pid: number): { cmdline: string; environ: string } {
  return { cmdline: readOr(`/proc/${pid}/cmdline`), environ: readOr(`/proc/${pid}/environ`) };
}

/** Path of the program that a Node process of the platform runs. */
export function programOf(pid: number): string {
  const program = argumentsAndEnvironment(pid)
    .cmdline.split("\0")
    .findLast((word) => word !== "");
  if (program === undefined) throw new Error(`process ${pid} has ended`);
  return program;
}

function machineOf(pid: number, dataDirectory: string): string | undefined {
  const environment = readOr(`/proc/${pid}/environ`);
  const prefix = `${dataDirectory}/machines/`;
  const entry = environment.split("\0").find((text) => /^(MACHINE_DIR|HOLDFAST_STATE_DIR)=/.test(text));
  const path = entry?.slice(entry.indexOf("=") + 1);
  return path?.startsWith(prefix) ? path.slice(prefix.length).split("/")[0] : undefined;
}

function readProcesses(): HostProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const stat = readOr(`/proc/${name}/stat`);
      // The name, the second field, is in parentheses and may contain spaces; later fields are counted from its end.
      const end = stat.lastIndexOf(")");
      const [state, parent] = stat.slice(end + 2).split(" ");
      if (end < 0 || state === "Z") return [];
      const cmdline = readOr(`/proc/${name}/cmdline`);
      return [{ pid: Number(name), parent: Number(parent), name: stat.slice(stat.indexOf("(") + 1, end), cmdline }];
    });
}

function readOr(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The process ended, or its memory is freed already.
    return "";
  }
}

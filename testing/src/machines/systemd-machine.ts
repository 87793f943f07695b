import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitUntil } from "../wait-until.ts";

/** True if systemd can run as the first process of namespaces. */
export const hasSystemd = process.getuid?.() === 0 && existsSync("/lib/systemd/systemd");

/** A systemd with its own units, on the files and the network of this host. */
export interface SystemdMachine {
  /** Runs a command there; rejects with its output if it fails. */
  run(command: string, ...args: readonly string[]): Promise<string>;
  /** Ends all processes there. */
  remove(): Promise<void>;
}

/**
 * Starts systemd; `directory` gets /opt and /var/lib/holdfast. `enter` is a prefix of command lines that run in the
 * machine's network; without it the network is this host's.
 */
export async function startSystemdMachine(
  directory: string,
  environment: Readonly<Record<string, string | undefined>>,
  enter: readonly string[] = [],
): Promise<SystemdMachine> {
  const groups = joinOwnGroups();
  const script = join(import.meta.dirname, "systemd-machine.sh");
  const namespaces = ["--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child", "--mount-proc"];
  const [program, ...args] = [...enter, "unshare", ...namespaces, "--propagation", "private", "sh", script, directory];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  groups.restore();
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)));

  const run = (command: string, ...args: readonly string[]) =>
    new Promise<string>((resolve, reject) => {
      const children = `/proc/${child.pid}/task/${child.pid}/children`;
      const pid = existsSync(children) ? readFileSync(children, "utf8").trim() : "";
      const namespacesOf = ["--target", pid, "--mount", "--pid", "--uts", "--ipc", "--cgroup"];
      const [first = "", ...into] = [...enter, "nsenter", ...namespacesOf, command, ...args];
      execFile(first, into, { encoding: "utf8", env: { ...process.env, ...environment } }, (error, stdout, stderr) => {
        if (error === null) resolve(`${stdout}${stderr}`);
        else reject(new Error(`${[command, ...args].join(" ")}: ${stdout}${stderr}`));
      });
    });

  const machine: SystemdMachine = {
    run,
    async remove() {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
      await waitUntil("its control groups are empty", () => groups.remove());
    },
  };
  await waitUntil("systemd runs", async () => (await run("systemctl", "is-system-running")).includes("running"), {
    withinMs: 30_000,
    describe: () => output,
  });
  return machine;
}

/** Trees of version 1 that the namespace has. */
const joined = new Set(["name=systemd", "cpu", "cpuacct", "cpu,cpuacct", "memory", "pids", "devices"]);

let machines = 0;

/** Moves this process into new control groups, which are the root of its next child's namespace. */
function joinOwnGroups() {
  machines += 1;
  const name = `holdfast-test-${process.pid}-${machines}`;
  const trees = readFileSync("/proc/self/cgroup", "utf8")
    .trim()
    .split("\n")
    .flatMap((line) => {
      const [, controllers = "", path = "/"] = line.split(":");
      // A new group of cpuset admits no process before it has CPUs.
      if (controllers !== "" && !joined.has(controllers)) return [];
      const tree = controllers === "" ? "unified" : controllers.replace("name=", "");
      const mounted = controllers === "" && !existsSync(`/sys/fs/cgroup/${tree}`) ? "" : tree;
      const own = join("/sys/fs/cgroup", mounted, path);
      return existsSync(own) ? [own] : [];
    });
  const enter = (directory: string) => writeFileSync(join(directory, "cgroup.procs"), String(process.pid));
  for (const own of trees) {
    mkdirSync(join(own, name));
    enter(join(own, name));
  }
  return {
    restore: () => trees.forEach(enter),
    /** Removes the groups; false while a process is in one. */
    remove() {
      try {
        for (const own of trees) removeTree(join(own, name));
        return true;
      } catch {
        return false;
      }
    },
  };
}

function removeTree(directory: string): void {
  if (!existsSync(directory)) return;
  for (const entry of readdirSync(directory, { withFileTypes: true }))
    if (entry.isDirectory()) removeTree(join(directory, entry.name));
  rmdirSync(directory);
}

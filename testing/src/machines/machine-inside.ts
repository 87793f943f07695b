import { execFile } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Runs a program among the mounts, processes and networks of the machine of this process, as its root; returns its
 * output.
 */
export async function runInside(pid: number, ...argv: string[]): Promise<string> {
  const { stdout } = await run("nsenter", ["--target", String(pid), "--mount", "--pid", "--net", "--user", ...argv]);
  return stdout.trim();
}

/** Path on this host of an absolute path in the machine of this process. */
export function pathInside(pid: number | string | undefined, path: string): string {
  return join(`/proc/${pid}/root`, path);
}

/** All readable files in a machine, except the host's code, that contain any of these texts. */
export async function filesWith(pid: number, texts: readonly string[]): Promise<string[]> {
  const root = `/proc/${pid}/root`;
  const directories = ["data", "etc", "run", "tmp", "var", "root", "home", "holdfast/code"].map(
    (name) => `${root}/${name}`,
  );
  const patterns = texts.flatMap((text) => ["-e", text]);
  const { stdout } = await run("grep", ["-rlsF", ...patterns, "--", ...directories], { maxBuffer: 1 << 24 }).catch(
    (error: { stdout?: string }) => ({ stdout: error.stdout ?? "" }),
  );
  return stdout.split("\n").flatMap((line) => (line === "" ? [] : [line.slice(root.length)]));
}

/** Environments of all processes of the machine. */
export function environmentsIn(pid: number): Promise<string> {
  return ofEachProcess(pid, "environ");
}

/** Arguments of all processes of the machine. */
export function argumentsIn(pid: number): Promise<string> {
  return ofEachProcess(pid, "cmdline");
}

async function ofEachProcess(pid: number, file: string): Promise<string> {
  const userNamespace = await readlink(`/proc/${pid}/ns/user`);
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const texts = await Promise.all(
    pids.map(async (each) => {
      try {
        return (await readlink(`/proc/${each}/ns/user`)) === userNamespace
          ? await readFile(`/proc/${each}/${file}`, "utf8")
          : "";
      } catch {
        // The process has ended.
        return "";
      }
    }),
  );
  return texts.join("\n");
}

import { spawn } from "node:child_process";
import type { Launch } from "@holdfast/image/in-image.ts";

/** Cost of a program run. */
export interface Cost {
  readonly wallMs: number;
  /** User and system time of all its processes. */
  readonly cpuMs: number;
}

/** Runs a program to its end, with all children that it waits for; throws with its output when it fails. */
export async function costOf({ command, args }: Launch): Promise<Cost> {
  const startedAt = performance.now();
  // The shell prints the times of its children last.
  const child = spawn("sh", ["-c", '"$@" || exit $?; times', "sh", command, ...args], { cwd: "/" });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output = (output + text).slice(-8_000)));
  const code = await new Promise((resolve) => child.once("close", resolve));
  const wallMs = performance.now() - startedAt;
  const found = /(\d+)m([\d.]+)s (\d+)m([\d.]+)s\s*$/.exec(output);
  if (code !== 0 || found === null) throw new Error(`${args.join(" ")} ended with ${String(code)}: ${output}`);
  const [, userMinutes, user, systemMinutes, system] = found.map(Number);
  const seconds = 60 * ((userMinutes ?? 0) + (systemMinutes ?? 0)) + (user ?? 0) + (system ?? 0);
  return { wallMs, cpuMs: 1_000 * seconds };
}

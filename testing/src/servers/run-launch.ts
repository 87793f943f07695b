import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Launch } from "@holdfast/image/in-image.ts";

const execute = promisify(execFile);

/** Runs a program to its end; resolves with its output, rejects with its error output when it fails. */
export async function runLaunch({ command, args }: Launch): Promise<string> {
  const { stdout } = await execute(command, args, { cwd: "/", maxBuffer: 16 << 20 });
  return stdout;
}

import { spawn } from "node:child_process";
import { join } from "node:path";

const entry = join(import.meta.dirname, "..", "..", "..", "local", "src", "main.ts");

/** Runs the installation's program until it ends; resolves with its exit code and its output. */
export function tryStart(args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [entry, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
  });
}

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDirectory } from "@holdfast/image/node-image.ts";

const execute = promisify(execFile);
const packages = ["openai==3.54.0", "litellm==1.109.0"];
const directory = join(cacheDirectory(process.env), "judges", `python-${packages.join("-").replaceAll("=", "")}`);

/** Runs a program of ours with the clients of OpenAI's API for Python, which are fetched from PyPI once; resolves with what it printed. */
export async function runPythonClients(
  program: string,
  environment: Readonly<Record<string, string>>,
): Promise<unknown> {
  await installed();
  const { stdout } = await execute(join(directory, "bin", "python3"), [join(import.meta.dirname, program)], {
    env: { PATH: process.env["PATH"] ?? "", LITELLM_LOCAL_MODEL_COST_MAP: "True", ...environment },
    timeout: 120_000,
  });
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}

async function installed(): Promise<void> {
  const done = join(directory, "done");
  if (existsSync(done)) return;
  // A virtual environment knows its own path, so that it is made where it stays.
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  await execute("/usr/bin/python3", ["-m", "venv", directory]);
  await execute(join(directory, "bin", "pip"), ["install", "--quiet", ...packages], { timeout: 600_000 });
  await mkdir(`${done}.new`);
  await rename(`${done}.new`, done);
}

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDirectory } from "@holdfast/image/node-image.ts";

const execute = promisify(execFile);

/**
 * The programs of a virtual environment with these packages, "name==version" each, which are downloaded from PyPI once.
 */
export async function pythonEnvironment(packages: readonly string[]): Promise<string> {
  const directory = join(cacheDirectory(process.env), "judges", `python-${packages.join("-").replaceAll("=", "")}`);
  const programs = join(directory, "bin");
  const done = join(directory, "done");
  if (existsSync(done)) return programs;
  // A virtual environment contains its own path, so that it cannot be moved.
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  await execute("/usr/bin/python3", ["-m", "venv", directory]);
  await execute(join(programs, "pip"), ["install", "--quiet", ...packages], { timeout: 600_000 });
  await mkdir(`${done}.new`);
  await rename(`${done}.new`, done);
  return programs;
}

const clientPackages = ["openai==3.54.0", "litellm==1.109.0"];

/** Runs a program of ours with the clients of OpenAI's API for Python; resolves with its output. */
export async function runPythonClients(
  program: string,
  environment: Readonly<Record<string, string>>,
): Promise<unknown> {
  const programs = await pythonEnvironment(clientPackages);
  const { stdout } = await execute(join(programs, "python3"), [join(import.meta.dirname, program)], {
    env: { PATH: process.env["PATH"] ?? "", LITELLM_LOCAL_MODEL_COST_MAP: "True", ...environment },
    timeout: 120_000,
  });
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}

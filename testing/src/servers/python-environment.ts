import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { oneAtATime } from "../controller/claim.ts";

const execute = promisify(execFile);
const installMs = 600_000;

/**
 * The programs of a virtual environment with these packages, "name==version" each, which are downloaded from PyPI once.
 */
export async function pythonEnvironment(packages: readonly string[]): Promise<string> {
  const name = `python-${packages.join("-").replaceAll(/[=[\]]/g, "")}`;
  const directory = join(cacheDirectory(process.env), "judges", name);
  // Test files run concurrently, and any of them may be the first to need it.
  await oneAtATime(name, () => install(directory, packages), installMs);
  return join(directory, "bin");
}

/** A virtual environment contains its own path, so that it cannot be moved: a marker in it says that it is complete. */
async function install(directory: string, packages: readonly string[]): Promise<void> {
  const marker = join(directory, "complete");
  if (existsSync(marker)) return;
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  await execute("/usr/bin/python3", ["-m", "venv", directory]);
  await execute(join(directory, "bin", "pip"), ["install", "--quiet", ...packages], { timeout: installMs });
  await mkdir(marker);
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

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { pythonEnvironment } from "./python-environment.ts";

const execute = promisify(execFile);
const packages = ["openai==3.54.0", "litellm==1.109.0"];

/** Runs a program of ours with the clients of OpenAI's API for Python; resolves with its output. */
export async function runPythonClients(
  program: string,
  environment: Readonly<Record<string, string>>,
): Promise<unknown> {
  const programs = await pythonEnvironment(packages);
  const { stdout } = await execute(join(programs, "python3"), [join(import.meta.dirname, program)], {
    env: { PATH: process.env["PATH"] ?? "", LITELLM_LOCAL_MODEL_COST_MAP: "True", ...environment },
    timeout: 120_000,
  });
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}

import { runProgram } from "@holdfast/common/run-program.ts";
import { controllerSettings } from "./platform-children.ts";
import type { PlatformParts } from "./platform-parts.ts";
import { UserError } from "./user-error.ts";

const maxOutputBytes = 64 << 20;

/**
 * Runs the controllers' recovery program with a controller's settings; returns its output. Throws a UserError with its
 * last error line.
 */
export async function runRecovery<T>(
  parts: PlatformParts,
  args: readonly string[],
  failure: string,
  signal: AbortSignal,
): Promise<T> {
  const env = { ...parts.environment, ...controllerSettings(parts) };
  try {
    const { stdout } = await runProgram(process.execPath, [parts.programs.recovery, ...args], {
      env,
      signal,
      maxBuffer: maxOutputBytes,
    });
    return JSON.parse(stdout) as T;
  } catch (error) {
    const reason =
      error instanceof Error && "stderr" in error ? String(error.stderr).trim().split("\n").at(-1) : String(error);
    throw new UserError(`${failure}: ${reason}`);
  }
}

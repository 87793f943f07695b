import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import { asRoot, testUid } from "../platform/platform-software.ts";
import { startTemporaryProcess, type TemporaryProcess } from "../platform/temporary-process.ts";

const execute = promisify(execFile);

/**
 * Reason why the host lacks one of the programs, each of which has to print its version; undefined when all are
 * installed.
 */
export async function missingProgram(...programs: readonly string[]): Promise<string | undefined> {
  for (const program of programs)
    try {
      await execute(program, ["--version"]);
    } catch {
      return `it takes ${program} of this host`;
    }
  return undefined;
}

/** Runs a program of the host to its end; rejects with its output when it fails. */
export async function runHostProgram(program: string, ...argv: readonly string[]): Promise<string> {
  const { stdout } = await execute(program, argv, { maxBuffer: 16 << 20 });
  return stdout;
}

/** Starts a program of the host, as the tests' own user where it refuses to run as root. */
export function startHostProgram(
  argv: readonly string[],
  ready: RegExp,
  { asTestUser = false }: { readonly asTestUser?: boolean } = {},
): Promise<TemporaryProcess> {
  const user =
    asTestUser && asRoot ? ["setpriv", "--reuid", `${testUid}`, "--regid", `${testUid}`, "--clear-groups"] : [];
  return startTemporaryProcess(dyingWithParent([...user, ...argv]), ready);
}

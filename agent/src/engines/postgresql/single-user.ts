import { join } from "node:path";
import { ProgramFailed, type RunProgram } from "../../os/program.ts";

/** Data that no server has, and what opens them. */
export interface ClosedData {
  readonly directory: string;
  /** Directory of the programs of their version. */
  readonly programs: string;
  /** Set beside, or instead of, those in the directory. */
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * Runs statements in the engine's single-user mode, each ending with a semicolon and an empty line. Resolves with all that
 * was printed; throws ProgramFailed with the first error.
 */
export async function runSingle(
  run: RunProgram,
  { directory, programs, settings }: ClosedData,
  { database, sql }: { readonly database: string; readonly sql: string },
  signal: AbortSignal,
): Promise<string> {
  const set = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const argv = [join(programs, "postgres"), "--single", "-F", "-j", "-D", directory, ...set, database];
  // The engine reads no settings of a database or a role here.
  const output = await run(argv, { env: { LC_ALL: "C", TZ: "UTC" }, input: sql, signal });
  // Single-user mode goes on after an error and ends well. The statement, which may set passwords, is beside the error.
  const [refusal] = output.split("\n").filter((line) => /(ERROR|FATAL|PANIC):/.test(line));
  if (refusal !== undefined) throw new ProgramFailed("postgres --single", "refused", refusal);
  return output;
}

/** Pure: statements without their ends, as `runSingle` takes them. */
export function singleInput(statements: readonly string[]): string {
  return statements.map((statement) => `${statement};\n\n`).join("");
}

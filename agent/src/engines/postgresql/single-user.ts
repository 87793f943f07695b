import { join } from "node:path";
import { ProgramFailed, type RunProgram } from "../../os/program.ts";

/** A data directory without a running server, and what opens it. */
export interface OfflineData {
  readonly directory: string;
  /** Directory of the programs of the data's version. */
  readonly programs: string;
  /** Settings that win over those in the directory. */
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * Runs statements in PostgreSQL's single-user mode (`postgres --single`), each ending with a semicolon and an empty
 * line. Resolves with the output. Throws ProgramFailed with the first error.
 */
export async function runSingleUser(
  run: RunProgram,
  { directory, programs, settings }: OfflineData,
  { database, sql }: { readonly database: string; readonly sql: string },
  signal: AbortSignal,
): Promise<string> {
  const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const argv = [join(programs, "postgres"), "--single", "-F", "-j", "-D", directory, ...options, database];
  // Single-user mode reads no settings of a database or a role.
  const output = await run(argv, { env: { LC_ALL: "C", TZ: "UTC" }, input: sql, signal });
  // Single-user mode exits with 0 even after an error. The statement next to the error may set passwords: leave it out.
  const [refusal] = output.split("\n").filter((line) => /(ERROR|FATAL|PANIC):/.test(line));
  if (refusal !== undefined) throw new ProgramFailed("postgres --single", "refused", refusal);
  return output;
}

/** Joins statements in the form that `runSingleUser` takes. */
export function singleUserInput(statements: readonly string[]): string {
  return statements.map((statement) => `${statement};\n\n`).join("");
}

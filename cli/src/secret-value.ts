import { readFile } from "node:fs/promises";
import type { Context } from "./context.ts";
import { UsageError } from "./exit-code.ts";
import type { Terminal } from "./terminal.ts";

/** Name of a file that is standard input. */
const inputName = "-";
/** The first line of a key or a certificate, whose further lines an answer to a prompt does not have. */
const pemStart = /^-----BEGIN /;

/**
 * The secret in a file, or in all of standard input for `-`. Line breaks at its end are not part of it, as in
 * `$(cat FILE)`. Throws UsageError.
 */
async function secretIn(file: string, { terminal }: Pick<Context, "terminal">): Promise<string> {
  const bytes = await (file === inputName ? inputOf(terminal) : readFile(file)).catch(
    (error: NodeJS.ErrnoException) => {
      if (error instanceof UsageError) throw error;
      throw new UsageError(`${file}: ${error.code === "ENOENT" ? "the file does not exist" : error.message}`);
    },
  );
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UsageError(`${file} is not text in UTF-8`);
  }
  return text.replace(/[\r\n]+$/, "");
}

async function inputOf(terminal: Terminal): Promise<Buffer> {
  if (terminal.isInteractive) throw new UsageError(`the file ${inputName} is standard input, which is a terminal here`);
  return terminal.readAll();
}

/** Secrets by name: those of files, and those that the user types. Throws UsageError for one without a value. */
export async function readSecrets(
  context: Pick<Context, "terminal">,
  {
    ask,
    files,
    titleOf,
  }: {
    readonly ask: readonly string[];
    readonly files: Readonly<Record<string, string>>;
    /** The question about a secret. */
    readonly titleOf: (name: string) => string;
  },
): Promise<Record<string, string>> {
  const both = ask.find((name) => Object.hasOwn(files, name));
  if (both !== undefined) throw new UsageError(`${both} is in a file, so its value is not requested`);
  const fromInput = Object.entries(files).filter(([, file]) => file === inputName);
  if (fromInput.length > 1 || (fromInput.length === 1 && ask.length > 0))
    throw new UsageError(`standard input is the value of one secret: ${fromInput[0]?.[0]}`);
  const secrets: Record<string, string> = {};
  for (const [name, file] of Object.entries(files)) secrets[name] = await secretIn(file, context);
  for (const name of ask) {
    const value = await context.terminal.askSecret(titleOf(name));
    if (pemStart.test(value))
      throw new UsageError(`the value of ${name} has several lines: use --from-file ${name}=FILE, or ${name}=-`);
    secrets[name] = value;
  }
  const [empty] = Object.entries(secrets).find(([, value]) => value === "") ?? [];
  if (empty !== undefined) throw new UsageError(`${empty} has no value; nothing was changed`);
  return secrets;
}

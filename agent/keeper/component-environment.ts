import type { ComponentSpec } from "./keeper-protocol.ts";

/** Carries a component's environment past the programs that put it into its cage, which are not to take anything from it. */
const carrier = "HOLDFAST_COMPONENT";
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * The component's command line, for the user that it runs as: a shell makes the environment and the directory, and becomes
 * the program. Until that user is taken everything runs with `outerEnvironment`.
 */
export function innerCommand(argv: readonly string[]): string[] {
  return ["/bin/sh", "-c", `eval "$${carrier}" && exec "$@"`, "sh", ...argv];
}

/** Environment of the programs that run before the component's user is taken: nothing in it is the agent's to choose. */
export function outerEnvironment({ env, cwd }: Pick<ComponentSpec, "env" | "cwd">): Record<string, string> {
  const variables = Object.entries({ PATH: usualPath, ...env });
  const exports = variables.map(([name, value]) => `export ${name}=${quoted(value)}`);
  const script = [`unset ${carrier}`, `cd ${quoted(cwd)} || exit 126`, "unset PWD OLDPWD", ...exports].join("\n");
  return { PATH: usualPath, [carrier]: script };
}

/** As a word of the shell's that stands for itself. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}

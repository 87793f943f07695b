import { UserError } from "../user-error.ts";

export type Settings = Readonly<Record<string, string>>;

/** Name of the environment variable of a flag. */
export function variableOf(flag: string): string {
  return `HOLDFAST_${flag.replaceAll("-", "_").toUpperCase()}`;
}

/**
 * A settings file in the format of systemd's EnvironmentFile (systemd.exec(5)), each value in double quotes. Throws a
 * UserError for a value with a line break.
 */
export function settingsText(settings: Settings): string {
  const lines = Object.entries(settings).map(([name, value]) => {
    if (/[\r\n\0]/.test(value)) throw new UserError(`${name}: a setting has no line breaks`);
    return `${name}="${value.replaceAll(/[\\"`$]/g, (each) => `\\${each}`)}"\n`;
  });
  return `# Settings of this machine's Holdfast: environment variables, see docs/reference/settings.md.\n${lines.join("")}`;
}

/** Parses a settings file, also one that an operator edited. Throws a UserError that names a line of another format. */
export function parseSettings(text: string): Settings {
  const settings: Record<string, string> = {};
  for (const [index, line] of text.split("\n").entries()) {
    if (/^\s*([#;].*)?$/.test(line)) continue;
    const [, name, quoted, single, plain] =
      /^\s*([A-Za-z_]\w*)=(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^"'\s]*))\s*$/.exec(line) ?? [];
    if (name === undefined) throw new UserError(`line ${index + 1} of the settings is not NAME=VALUE: ${line}`);
    settings[name] = quoted?.replaceAll(/\\(.)/g, "$1") ?? single ?? plain ?? "";
  }
  return settings;
}

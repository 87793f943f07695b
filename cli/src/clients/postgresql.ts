import type { Connection } from "@holdfast/sdk/responses.ts";
import type { PrivateFiles } from "../private-files.ts";
import { type EngineClient, type Login, primaryAddress } from "./engine-client.ts";
import { postgresqlSnippets } from "./postgresql-snippets.ts";

export const postgresql: EngineClient = {
  aliases: ["postgres"],
  uriAuthority: "sslrootcert",
  programs: ["psql"],
  versionsIn: "usr/lib/postgresql",
  session: (connection, login, files) => ({ args: [print(connection, login, files)], environment: {} }),
  conninfo: { print, example: (command) => `psql "$(${command})"` },
  snippets: postgresqlSnippets,
};

function print(
  connection: Connection,
  { user, password, database }: Login,
  files: Pick<PrivateFiles, "write">,
): string {
  const caFile = files.write("ca.pem", connection.ca_certificate);
  const passFile = files.write("passfile", passLine(connection, user, password));
  return conninfo(connection, { caFile, passFile }, { user, database });
}

/** A libpq connection string with sslmode=verify-full. */
export function conninfo(
  connection: Connection,
  files: { readonly caFile: string; readonly passFile?: string },
  overrides: { user?: string | undefined; database?: string | undefined } = {},
): string {
  const address = primaryAddress(connection);
  const parameters = {
    host: connection.host,
    // The certificate is verified against `host`; `hostaddr` avoids a DNS lookup.
    ...(address === undefined ? {} : { hostaddr: address }),
    port: String(connection.port),
    dbname: overrides.database ?? connection.database,
    user: overrides.user ?? connection.user,
    sslmode: "verify-full",
    sslrootcert: files.caFile,
    ...(files.passFile === undefined ? {} : { passfile: files.passFile }),
  };
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${quoteValue(value)}`)
    .join(" ");
}

/** A line of a libpq password file (host:port:database:user:password), with escaped separators. */
export function passLine(connection: Connection, user: string, password: string): string {
  return `${[connection.host, String(connection.port), "*", user, password].map((field) => (field === "*" ? field : field.replaceAll(/[\\:]/g, "\\$&"))).join(":")}\n`;
}

function quoteValue(value: string): string {
  return /^[\w./:@-]+$/.test(value) ? value : `'${value.replaceAll(/['\\]/g, "\\$&")}'`;
}

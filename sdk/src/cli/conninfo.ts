import type { Connection } from "../answers.ts";

/** Parameters of libpq for a connection that is verified in full. */
export function conninfo(
  connection: Connection,
  files: { readonly caFile: string; readonly passFile?: string },
  overrides: { user?: string | undefined; database?: string | undefined } = {},
): string {
  const address = primaryAddress(connection);
  const parameters = {
    host: connection.host,
    // `host` is the name that the certificate is checked for; `hostaddr` spares the look-up.
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

/** Address of the machine that takes writes; undefined while none is known. */
export function primaryAddress({ nodes }: Connection): string | undefined {
  return (nodes.find((node) => node.role === "primary") ?? nodes[0])?.addresses[0];
}

/** A line of a password file; separators within fields are escaped. */
export function passLine(connection: Connection, user: string, password: string): string {
  return `${[connection.host, String(connection.port), "*", user, password].map((field) => (field === "*" ? field : field.replaceAll(/[\\:]/g, "\\$&"))).join(":")}\n`;
}

function quoteValue(value: string): string {
  return /^[\w./:@-]+$/.test(value) ? value : `'${value.replaceAll(/['\\]/g, "\\$&")}'`;
}

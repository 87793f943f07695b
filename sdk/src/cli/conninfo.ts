import { homedir } from "node:os";
import { join } from "node:path";
import type { Connection, ManagedService } from "../responses.ts";
import type { Context } from "./context.ts";
import { UsageError } from "./exit-code.ts";
import { createLastingFiles } from "./private-files.ts";

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

/** Address of the primary's machine; undefined without one. */
export function primaryAddress({ nodes }: Connection): string | undefined {
  return (nodes.find((node) => node.role === "primary") ?? nodes[0])?.addresses[0];
}

/** A line of a libpq password file (host:port:database:user:password), with escaped separators. */
export function passLine(connection: Connection, user: string, password: string): string {
  return `${[connection.host, String(connection.port), "*", user, password].map((field) => (field === "*" ? field : field.replaceAll(/[\\:]/g, "\\$&"))).join(":")}\n`;
}

function quoteValue(value: string): string {
  return /^[\w./:@-]+$/.test(value) ? value : `'${value.replaceAll(/['\\]/g, "\\$&")}'`;
}

/** Creates a libpq connection string for other programs, whose CA and password files are permanent. */
export async function createConninfo(context: Context, service: ManagedService): Promise<string> {
  if (service.database_type !== "postgresql")
    throw new UsageError(
      `${service.name} is ${service.database_type}: only postgresql has connection strings of libpq`,
    );
  const connection = await context.client.services.connection(service.id);
  const files = createLastingFiles(clientDirectory(context), service.id);
  const caFile = files.write("ca.pem", connection.ca_certificate);
  const { password } = await context.client.databaseUsers.revealPassword(service.id, connection.user);
  const passFile = files.write("passfile", passLine(connection, connection.user, password));
  return conninfo(connection, { caFile, passFile });
}

/** Removes the files of createConninfo for a service. */
export function removeConninfo(context: Context, serviceId: string): void {
  createLastingFiles(clientDirectory(context), serviceId).remove();
}

function clientDirectory({ settings, environment }: Context): string {
  if (settings.dataDirectory !== undefined) return join(settings.dataDirectory, "client");
  const home = environment.HOME ?? homedir();
  return join(environment.XDG_CONFIG_HOME ?? join(home, ".config"), "holdfast", "client");
}

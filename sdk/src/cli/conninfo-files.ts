import type { ManagedService } from "../answers.ts";
import { homedir } from "node:os";
import { join } from "node:path";
import { conninfo, passLine } from "./conninfo.ts";
import type { Context } from "./context.ts";
import { UsageError } from "./exit-code.ts";
import { createLastingFiles } from "./private-files.ts";

/** A connection string of libpq whose files stay, so that it can be pasted. */
export async function lastingConninfo(context: Context, service: ManagedService): Promise<string> {
  if (service.database_type !== "postgresql")
    throw new UsageError(`${service.name} is ${service.database_type}: only postgresql has a conninfo`);
  const connection = await context.client.services.connection(service.id);
  const files = createLastingFiles(clientDirectory(context), service.id);
  const caFile = files.write("ca.pem", connection.ca_certificate);
  const { password } = await context.client.databaseUsers.revealPassword(service.id, connection.user);
  const passFile = files.write("passfile", passLine(connection, connection.user, password));
  return conninfo(connection, { caFile, passFile });
}

/** Removes what lastingConninfo left for a service. */
export function forgetConninfo(context: Context, serviceId: string): void {
  createLastingFiles(clientDirectory(context), serviceId).remove();
}

function clientDirectory({ settings, environment }: Context): string {
  if (settings.dataDirectory !== undefined) return join(settings.dataDirectory, "client");
  const home = environment.HOME ?? homedir();
  return join(environment.XDG_CONFIG_HOME ?? join(home, ".config"), "holdfast", "client");
}

import { homedir } from "node:os";
import { join } from "node:path";
import type { ManagedService } from "../responses.ts";
import { conninfoFormOf } from "./clients/engine-clients.ts";
import type { Context } from "./context.ts";
import { createLastingFiles } from "./private-files.ts";

/** Creates a connection string for other programs, whose CA and password files are permanent. */
export async function createConninfo(context: Context, service: ManagedService): Promise<string> {
  const form = conninfoFormOf(service);
  const connection = await context.client.services.connection(service.id);
  const files = createLastingFiles(clientDirectory(context), service.id);
  const { user } = connection;
  const { password } = await context.client.databaseUsers.revealPassword(service.id, user);
  return form.print(connection, { user, password }, files);
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

import { homedir } from "node:os";
import { join } from "node:path";
import type { Connection, ManagedService } from "../responses.ts";
import { type Route, routed } from "./clients/engine-client.ts";
import { conninfoFormOf } from "./clients/engine-clients.ts";
import type { Context } from "./context.ts";
import { createLastingFiles, type PrivateFiles } from "./private-files.ts";

export interface ConninfoOptions extends Route {
  readonly user?: string | undefined;
  readonly database?: string | undefined;
}

/** Creates a connection string for other programs, whose CA and password files are permanent. */
export async function createConninfo(
  context: Context,
  service: ManagedService,
  { user: as, database, ...route }: ConninfoOptions = {},
): Promise<string> {
  const form = conninfoFormOf(service);
  const connection = routed(await context.client.services.connection(service.id), route);
  const files = createLastingFiles(clientDirectory(context), service.id);
  const user = as ?? connection.user;
  const { password } = await context.client.databaseUsers.revealPassword(service.id, user);
  return form.print(connection, { user, password, database }, withPassfiles(files, connection, { user, ...route }));
}

/** Files of which each user and route has a passfile of its own, so that earlier connection strings stay valid. */
function withPassfiles(
  files: PrivateFiles,
  connection: Connection,
  { user, pooled, replica }: Route & { readonly user: string },
): Pick<PrivateFiles, "write"> {
  const route = pooled === true ? ".pooled" : replica === true ? ".replica" : "";
  const suffix = `${user === connection.user ? "" : `.${encodeURIComponent(user)}`}${route}`;
  return { write: (name, text) => files.write(name === "passfile" ? `${name}${suffix}` : name, text) };
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

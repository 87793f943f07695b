import { homedir } from "node:os";
import { join } from "node:path";
import type { Connection, ManagedService } from "@holdfast/sdk/responses.ts";
import { type Login, primaryAddress, type Route, routed, type SnippetLanguage } from "./clients/engine-client.ts";
import { conninfoFormatOf, engineClientOf, findConninfoFormat, snippetOf } from "./clients/engine-clients.ts";
import type { Context } from "./context.ts";
import { engineLogin } from "./engine-login.ts";
import { UsageError } from "./exit-code.ts";
import { noteUnresolvedName } from "./name-notice.ts";
import { createPermanentFiles, type PrivateFiles } from "./private-files.ts";

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
  const form = conninfoFormatOf(service);
  const { connection, login, files } = await openAccess(context, service, { user: as, database, ...route });
  return form.print(connection, login, files);
}

/** Creates a program in a language that connects and verifies; its files are permanent. */
export async function createSnippet(
  context: Context,
  service: ManagedService,
  language: SnippetLanguage,
  options: ConninfoOptions = {},
): Promise<string> {
  const print = snippetOf(service, language);
  const { connection, login, files } = await openAccess(context, service, options);
  const { host, port } = connection;
  const address = primaryAddress(connection);
  if (address === undefined)
    throw new UsageError(`${service.name} has no machine yet: ${context.program} services wait ${service.name}`);
  return print({
    host,
    address,
    port,
    user: login.user,
    database: login.database ?? connection.database,
    caFile: files.write("ca.pem", connection.ca_certificate),
    passwordFile: files.write("password", login.password),
    hostsFile: files.write("hosts", `${address} ${host}\n`),
    conninfo: findConninfoFormat(service.database_type)?.print(connection, login, files) ?? "",
  });
}

async function openAccess(
  context: Context,
  service: ManagedService,
  { user: as, database, ...route }: ConninfoOptions,
): Promise<{ connection: Connection; login: Login; files: Pick<PrivateFiles, "write"> }> {
  const connection = routed(await context.client.services.connection(service.id), route);
  const files = createPermanentFiles(clientDirectory(context), service.id);
  const login = await engineLogin(context, service, engineClientOf(service), connection, { user: as, database });
  await noteUnresolvedName(context, connection.host);
  return { connection, login, files: withRoute(files, connection, { user: login.user, ...route }) };
}

/** Files with separate names for each user and route, so that earlier connection strings and programs remain valid. */
function withRoute(
  files: PrivateFiles,
  connection: Connection,
  { user, pooled, replica }: Route & { readonly user: string },
): Pick<PrivateFiles, "write"> {
  const route = pooled === true ? ".pooled" : replica === true ? ".replica" : "";
  const suffix = `${user === connection.user ? "" : `.${encodeURIComponent(user)}`}${route}`;
  return { write: (name, text) => files.write(name === "ca.pem" ? name : `${name}${suffix}`, text) };
}

/** Removes the files of createConninfo for a service. */
export function removeConninfo(context: Context, serviceId: string): void {
  createPermanentFiles(clientDirectory(context), serviceId).remove();
}

function clientDirectory({ settings, environment }: Context): string {
  if (settings.dataDirectory !== undefined) return join(settings.dataDirectory, "client");
  const home = environment.HOME ?? homedir();
  return join(environment.XDG_CONFIG_HOME ?? join(home, ".config"), "holdfast", "client");
}

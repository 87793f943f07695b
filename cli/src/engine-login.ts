import type { Connection, ManagedService } from "@holdfast/sdk/responses.ts";
import type { EngineClient, Login } from "./clients/engine-client.ts";
import type { Context } from "./context.ts";
import { UsageError } from "./exit-code.ts";

interface LoginOptions {
  /** Absent for the user of the connection. */
  readonly user?: string | undefined;
  readonly database?: string | undefined;
}

/**
 * The login of a session, whose password the API reveals; without user and password for an engine without users. Throws
 * UsageError if the options name a user of such an engine, or no user where the service has no default one.
 */
export async function engineLogin(
  { client: api }: Pick<Context, "client">,
  { id, name, database_type: type }: Pick<ManagedService, "id" | "name" | "database_type">,
  client: Pick<EngineClient, "hasNoUsers">,
  { user: byDefault }: Pick<Connection, "user">,
  { user: as, database }: LoginOptions,
): Promise<Login> {
  if (client.hasNoUsers === true) {
    if (as !== undefined) throw new UsageError(`${name} is ${type}, which has no users: omit --user`);
    return { user: "", password: "", database };
  }
  const user = as ?? byDefault;
  if (user === "") throw new UsageError(`${name} has no default user: name one with --user`);
  const { password } = await api.databaseUsers.revealPassword(id, user);
  return { user, password, database };
}

import type { UsersFacet } from "../contents-facets.ts";
import { EngineRefused } from "../engine-errors.ts";

/** Prefix of the roles that DocumentDB creates, some of which may sign in. */
const ownPrefix = "documentdb_";

/** PostgreSQL's users, without the roles of DocumentDB. */
export function withoutOwnRoles(users: UsersFacet): UsersFacet {
  return {
    ...users,
    list: async (instance, signal) => (await users.list(instance, signal)).filter(({ username }) => !isOwn(username)),
    async put(instance, user, signal, options) {
      if (isOwn(user.username)) throw new EngineRefused(`The name ${user.username} is reserved for the platform.`);
      return users.put(instance, user, signal, options);
    },
    async drop(instance, username, signal, options) {
      return isOwn(username) ? { existed: false } : users.drop(instance, username, signal, options);
    },
  };
}

function isOwn(username: string): boolean {
  return username.startsWith(ownPrefix);
}

import { type List, type ListOptions, listOf } from "./pages.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";
import type { DatabasePassword, DatabaseUser, NewDatabaseUser } from "./types.ts";

/** Users inside the engine of a service, those made in SQL too. */
export class DatabaseUsers {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(serviceId: string, options?: ListOptions): List<DatabaseUser> {
    return listOf(this.#transport, usersOf(serviceId), "users", options);
  }

  /** Answers when the engine has the user; revealPassword has the password. */
  create(serviceId: string, user: NewDatabaseUser, options?: CallOptions): Promise<DatabaseUser> {
    return this.#transport.request("POST", usersOf(serviceId), { ...options, body: user });
  }

  get(serviceId: string, username: string, options?: CallOptions): Promise<DatabaseUser> {
    return this.#transport.request("GET", usersOf(serviceId, username), options);
  }

  delete(serviceId: string, username: string, options?: CallOptions): Promise<void> {
    return this.#transport.request("DELETE", usersOf(serviceId, username), { ...options, goneIsDone: true });
  }

  /** The current password. Throws Conflict when it was changed in SQL. */
  revealPassword(serviceId: string, username: string, options?: CallOptions): Promise<DatabasePassword> {
    return this.#transport.request("POST", usersOf(serviceId, username, "reveal-password"), options);
  }

  /** A new random password; open sessions stay. */
  resetPassword(serviceId: string, username: string, options?: CallOptions): Promise<DatabasePassword> {
    return this.#transport.request("POST", usersOf(serviceId, username, "reset-password"), options);
  }
}

function usersOf(serviceId: string, ...parts: readonly string[]): string {
  return pathOf("managed-services", serviceId, "database-users", ...parts);
}

import type { DatabasePassword, DatabaseUser, DatabaseUserDeletion, NewDatabaseUser } from "./database-types.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** Users inside the engine of a service, those made in SQL too. */
export class DatabaseUsers {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(serviceId: string, options?: ListOptions): List<DatabaseUser> {
    return listOf(this.#transport, usersOf(serviceId), "users", options);
  }

  /** Answers when the engine has the user, or after 15 s with an operation; revealPassword has the password. */
  create(serviceId: string, user: NewDatabaseUser, options?: CallOptions): Promise<DatabaseUser> {
    return this.#transport.request("POST", usersOf(serviceId), { ...options, body: user });
  }

  get(serviceId: string, username: string, options?: CallOptions): Promise<DatabaseUser> {
    return this.#transport.request("GET", usersOf(serviceId, username), options);
  }

  /** Answers when the engine has removed it, or after 15 s with an operation. */
  async delete(serviceId: string, username: string, options?: CallOptions): Promise<DatabaseUserDeletion> {
    const asked = { ...options, goneIsDone: true };
    const path = usersOf(serviceId, username);
    const underWay = await this.#transport.request<DatabaseUserDeletion | undefined>("DELETE", path, asked);
    return underWay ?? { service_id: serviceId, username, operation: null };
  }

  /** The current password. Throws Conflict when it was changed in SQL. */
  revealPassword(serviceId: string, username: string, options?: CallOptions): Promise<DatabasePassword> {
    return this.#transport.request("POST", usersOf(serviceId, username, "reveal-password"), options);
  }

  /** A new random password; open sessions stay. With an operation it holds once that is completed. */
  resetPassword(serviceId: string, username: string, options?: CallOptions): Promise<DatabasePassword> {
    return this.#transport.request("POST", usersOf(serviceId, username, "reset-password"), options);
  }
}

function usersOf(serviceId: string, ...parts: readonly string[]): string {
  return pathOf("managed-services", serviceId, "database-users", ...parts);
}

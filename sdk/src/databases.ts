import { DatabaseMethods, DatabaseUserMethods } from "./methods.ts";
import type { Database, DatabaseDeletion, DatabaseUserDeletion } from "./responses.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Databases in a service's engine. */
export class Databases extends DatabaseMethods {
  /** Creates a database, owned by the default user unless `owner` names another one. */
  create(
    serviceId: string,
    name: string,
    { owner, ...options }: CallOptions & { owner?: string | undefined } = {},
  ): Promise<Database> {
    const body = { name, ...(owner !== undefined && { owner }) };
    return this.transport.request("POST", pathOf("managed-services", serviceId, "databases"), { ...options, body });
  }

  /** Resolves when the engine has dropped the database, or after 15 s with the operation that drops it. */
  async delete(serviceId: string, name: string, options?: CallOptions): Promise<DatabaseDeletion> {
    const path = pathOf("managed-services", serviceId, "databases", name);
    const request = { ...options, absentIsSuccess: true };
    const pending = await this.transport.request<DatabaseDeletion | undefined>("DELETE", path, request);
    return pending ?? { service_id: serviceId, name, operation: null };
  }
}

/** Users in a service's engine, also those created in SQL. */
export class DatabaseUsers extends DatabaseUserMethods {
  /** Resolves when the engine has removed the user, or after 15 s with the operation that removes it. */
  async delete(serviceId: string, username: string, options?: CallOptions): Promise<DatabaseUserDeletion> {
    const path = pathOf("managed-services", serviceId, "database-users", username);
    const request = { ...options, absentIsSuccess: true };
    const pending = await this.transport.request<DatabaseUserDeletion | undefined>("DELETE", path, request);
    return pending ?? { service_id: serviceId, username, operation: null };
  }
}

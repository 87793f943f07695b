import type { DatabaseUserDeletion } from "./answers.ts";
import { DatabaseUserMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Users inside the engine of a service, those made in SQL too. */
export class DatabaseUsers extends DatabaseUserMethods {
  /** Answers when the engine has removed it, or after 15 s with an operation. */
  async delete(serviceId: string, username: string, options?: CallOptions): Promise<DatabaseUserDeletion> {
    const asked = { ...options, goneIsDone: true };
    const path = usersOf(serviceId, username);
    const underWay = await this.transport.request<DatabaseUserDeletion | undefined>("DELETE", path, asked);
    return underWay ?? { service_id: serviceId, username, operation: null };
  }
}

function usersOf(serviceId: string, ...parts: readonly string[]): string {
  return pathOf("managed-services", serviceId, "database-users", ...parts);
}

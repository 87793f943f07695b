import type { DatabaseDeletion } from "./answers.ts";
import { DatabaseMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Databases inside the engine of a service. */
export class Databases extends DatabaseMethods {
  /** Answers when the engine has dropped it, or after 15 s with an operation. */
  async delete(serviceId: string, name: string, options?: CallOptions): Promise<DatabaseDeletion> {
    const path = pathOf("managed-services", serviceId, "databases", name);
    const asked = { ...options, goneIsDone: true };
    const underWay = await this.transport.request<DatabaseDeletion | undefined>("DELETE", path, asked);
    return underWay ?? { service_id: serviceId, name, operation: null };
  }
}

import type { Database, DatabaseDeletion } from "./database-types.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** Databases inside the engine of a service. */
export class Databases {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(serviceId: string, options?: ListOptions): List<Database> {
    return listOf(this.#transport, pathOf("managed-services", serviceId, "databases"), "databases", options);
  }

  /** Answers when the engine has it, or after 15 s with an operation. */
  create(serviceId: string, name: string, options?: CallOptions): Promise<Database> {
    const path = pathOf("managed-services", serviceId, "databases");
    return this.#transport.request("POST", path, { ...options, body: { name } });
  }

  /** Answers when the engine has dropped it, or after 15 s with an operation. */
  async delete(serviceId: string, name: string, options?: CallOptions): Promise<DatabaseDeletion> {
    const path = pathOf("managed-services", serviceId, "databases", name);
    const asked = { ...options, goneIsDone: true };
    const underWay = await this.#transport.request<DatabaseDeletion | undefined>("DELETE", path, asked);
    return underWay ?? { service_id: serviceId, name, operation: null };
  }
}

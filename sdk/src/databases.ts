import { type List, type ListOptions, listOf } from "./pages.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";
import type { Database } from "./types.ts";

/** Databases inside the engine of a service. */
export class Databases {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(serviceId: string, options?: ListOptions): List<Database> {
    return listOf(this.#transport, pathOf("managed-services", serviceId, "databases"), "databases", options);
  }

  create(serviceId: string, name: string, options?: CallOptions): Promise<Database> {
    const path = pathOf("managed-services", serviceId, "databases");
    return this.#transport.request("POST", path, { ...options, body: { name } });
  }

  delete(serviceId: string, name: string, options?: CallOptions): Promise<void> {
    const path = pathOf("managed-services", serviceId, "databases", name);
    return this.#transport.request("DELETE", path, { ...options, goneIsDone: true });
  }
}

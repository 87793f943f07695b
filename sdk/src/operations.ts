import type { Operation } from "./operation-types.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** What takes time. */
export class Operations {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Those of one service, newest first. */
  list(serviceId: string, options?: ListOptions): List<Operation> {
    return listOf(this.#transport, pathOf("managed-services", serviceId, "operations"), "operations", options);
  }

  get(id: string, options?: CallOptions): Promise<Operation> {
    return this.#transport.request("GET", pathOf("operations", id), options);
  }
}

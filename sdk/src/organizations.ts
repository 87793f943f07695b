import type { Organization } from "./access-types.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** Organizations that the caller belongs to. */
export class Organizations {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options?: ListOptions): List<Organization> {
    return listOf(this.#transport, "/organizations", "organizations", options);
  }

  /** The person who makes it is its owner. */
  create(name: string, options?: CallOptions): Promise<Organization> {
    return this.#transport.request("POST", "/organizations", { ...options, body: { name } });
  }

  get(id: string, options?: CallOptions): Promise<Organization> {
    return this.#transport.request("GET", pathOf("organizations", id), options);
  }

  rename(id: string, name: string, options?: CallOptions): Promise<Organization> {
    return this.#transport.request("PATCH", pathOf("organizations", id), { ...options, body: { name } });
  }

  /** With its keys, tokens and webhooks. Throws Conflict while it has services. */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.#transport.request("DELETE", pathOf("organizations", id), { ...options, goneIsDone: true });
  }
}

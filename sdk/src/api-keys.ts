import type { ApiKey, CreatedApiKey, NewApiKey } from "./access-types.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** Ids with secrets that programs of the organization sign in with. */
export class ApiKeys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options?: ListOptions): List<ApiKey> {
    return listOf(this.#transport, "/api-keys", "api_keys", options);
  }

  /** The secret in the answer is shown this once. */
  create(key: NewApiKey, options?: CallOptions): Promise<CreatedApiKey> {
    return this.#transport.request("POST", "/api-keys", { ...options, body: key });
  }

  /** A new secret under the same id; the old one works on for the overlap, not at all when left out. */
  rotate(id: string, overlapHours?: number, options?: CallOptions): Promise<CreatedApiKey> {
    const body = { overlap_hours: overlapHours };
    return this.#transport.request("POST", pathOf("api-keys", id, "rotate"), { ...options, body });
  }

  /** Ends the key at once, and the tokens that it made. */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.#transport.request("DELETE", pathOf("api-keys", id), { ...options, goneIsDone: true });
  }
}

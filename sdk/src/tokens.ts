import type { CreatedToken, NewToken, Token } from "./access-types.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** Bearer tokens, never more than their maker. */
export class Tokens {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options?: ListOptions): List<Token> {
    return listOf(this.#transport, "/tokens", "tokens", options);
  }

  /** The token in the answer is shown this once. */
  create(token: NewToken, options?: CallOptions): Promise<CreatedToken> {
    return this.#transport.request("POST", "/tokens", { ...options, body: token });
  }

  /** Ends the token at once, and those that it made. */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.#transport.request("DELETE", pathOf("tokens", id), { ...options, goneIsDone: true });
  }
}

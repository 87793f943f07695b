import { type List, type ListOptions, listOf } from "../../../sdk/src/pages.ts";
import type { Transport } from "../../../sdk/src/transport.ts";

interface Plaque {
  readonly id: string;
  readonly words: string;
  /** Empty until it is engraved. */
  readonly engraved: string;
}

/** Plaques, as the SDK would have them. */
export class Plaques {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options?: ListOptions): List<Plaque> {
    return listOf(this.#transport, "/plaques", "plaques", options);
  }
}

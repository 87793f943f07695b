import { type List, type ListOptions, listOf } from "../../../sdk/src/pages.ts";
import type { Transport } from "../../../sdk/src/transport.ts";

interface Note {
  readonly id: string;
  readonly text: string;
  /** Empty until it is rendered. */
  readonly rendered: string;
}

/** Notes, as the SDK would have them. */
export class Notes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options?: ListOptions): List<Note> {
    return listOf(this.#transport, "/notes", "notes", options);
  }
}

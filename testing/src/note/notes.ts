import { type List, type ListOptions, listOf } from "@holdfast/sdk/pages.ts";
import type { Transport } from "@holdfast/sdk/transport.ts";

interface Note {
  readonly id: string;
  readonly text: string;
  /** Empty until the note is rendered. */
  readonly rendered: string;
}

/** Methods of notes, as in the SDK. */
export class Notes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options?: ListOptions): List<Note> {
    return listOf(this.#transport, "/notes", "notes", options);
  }
}

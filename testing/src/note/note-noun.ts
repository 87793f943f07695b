import type { CliCommand } from "@holdfast/cli/command.ts";
import { take } from "@holdfast/cli/flag-values.ts";
import { transportOptionsOf } from "@holdfast/sdk/node/node-client.ts";
import { type List, type ListOptions, listOf } from "@holdfast/sdk/pages.ts";
import { createTransport, type Transport } from "@holdfast/sdk/transport.ts";

interface Note {
  readonly id: string;
  readonly text: string;
  /** Rendered text; empty until the note is rendered. */
  readonly rendered: string;
}

/** Methods of notes, as in the SDK. */
class Notes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options?: ListOptions): List<Note> {
    return listOf(this.#transport, "/notes", "notes", options);
  }
}

export function addNotes(notes: CliCommand): void {
  notes
    .command("list")
    .description("list all notes with their texts")
    .example("notes list")
    .does(async ({ settings, output }) => {
      const client = new Notes(createTransport(transportOptionsOf(settings)));
      return output.list(await take(client.list()), ["id", "text", "rendered"]);
    });
}

import type { CliCommand } from "@holdfast/cli/command.ts";
import { take } from "@holdfast/cli/flag-values.ts";
import { transportOptionsOf } from "@holdfast/sdk/node/node-client.ts";
import { createTransport } from "@holdfast/sdk/transport.ts";
import { Notes } from "./notes.ts";

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

import type { CliCommand } from "../../../sdk/src/cli/command.ts";
import { take } from "../../../sdk/src/cli/flag-values.ts";
import { transportOptionsOf } from "../../../sdk/src/node/node-client.ts";
import { createTransport } from "../../../sdk/src/transport.ts";
import { Plaques } from "./plaques.ts";

export function addPlaques(plaques: CliCommand): void {
  plaques
    .command("list")
    .description("all plaques, and what stands on them")
    .example("plaques list")
    .does(async ({ settings, output }) => {
      const client = new Plaques(createTransport(transportOptionsOf(settings)));
      return output.list(await take(client.list()), ["id", "words", "engraved"]);
    });
}

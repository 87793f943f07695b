import type { CliCommand } from "../command.ts";

export function addMe(me: CliCommand): void {
  me.example("me")
    .example("me --output json")
    .does(async ({ client, output }) => output.show(await client.me()));
}

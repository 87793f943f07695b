import type { CliCommand } from "../command.ts";

export function addVersion(version: CliCommand): void {
  version.example("version").does(async ({ output }) => {
    const number = version.parent?.version() ?? "";
    if (output.format === "table") output.print(number);
    else output.show({ version: number });
  });
}

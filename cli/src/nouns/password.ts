import type { CliCommand } from "../command.ts";
import { storeOperatorPassword } from "../local-installation.ts";
import { askNewPassword } from "./login.ts";

export function addPassword(password: CliCommand): void {
  password
    .option("--username <name>", "your user name; the profile's user name by default")
    .example("password")
    .example("password --username anna < passwords.txt")
    .does(async (context, flags: { username?: string }) => {
      const { terminal, settings } = context;
      const name = flags.username ?? settings.username ?? (await terminal.ask("User name"));
      const current = await terminal.askSecret("Current password");
      const client = context.clientOf({ kind: "basic", name, secret: current });
      const password = await askNewPassword(context);
      await client.users.changePassword(current, password);
      context.note("your password is changed");
      await storeOperatorPassword(context, { username: name, password });
    });
}

import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";

const columns = ["id", "created_at", "created_from", "last_used_at", "last_used_from", "user_agent"];

export function addSessions(sessions: CliCommand): void {
  sessions
    .command("list")
    .description("list your sessions in browsers")
    .example("sessions list")
    .does(async ({ userClient, output }) => output.list(await take(userClient.sessions.list()), columns));

  sessions
    .command("delete <session>")
    .description("end one of your browser sessions, or all of them with the word all")
    .option("--yes", "do not ask for confirmation")
    .example("sessions delete 019a...")
    .example("sessions delete all --yes")
    .does(async ({ userClient, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(id === "all" ? "End all of your sessions in browsers?" : `End the session ${id}?`, yes);
      await userClient.sessions.delete(id);
      output.info(id === "all" ? "all sessions are ended" : `${id} is ended`);
    });
}

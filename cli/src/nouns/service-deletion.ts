import type { ManagedService } from "@holdfast/sdk/responses.ts";
import type { CliCommand } from "../command.ts";
import { removeConninfo } from "../conninfo.ts";
import { serviceFields } from "./service-fields.ts";
import { waitForService, type WaitFlags, withWait } from "./service-wait.ts";

interface DeleteFlags extends WaitFlags {
  readonly yes?: boolean;
  readonly skipFinalBackup?: boolean;
}

export function addDelete(services: CliCommand): void {
  withWait(services.command("delete <service>"))
    .description("delete a service with its data; one with backups can be undeleted for 7 days")
    .option("--skip-final-backup", "delete permanently: without a final backup, and with the automated backups")
    .option("--yes", "do not ask for confirmation")
    .example("services delete orders --wait")
    .does(async (context, name: string, { skipFinalBackup, yes, ...flags }: DeleteFlags) => {
      const service = await context.service(name);
      const { question, result } = deletionTexts(service, skipFinalBackup, context.program);
      await context.confirm(question, yes);
      const deleted = await context.client.services.delete(service.id, { skipFinalBackup });
      removeConninfo(context, service.id);
      if (flags.wait === true) await waitForService(context, service, "deleted", flags.timeout);
      else context.output.show(deleted, serviceFields);
      context.output.info(result);
    });
}

/** The question before a deletion and the text after it. A service without backups cannot be undeleted. */
export function deletionTexts(
  { id, name, backups }: Pick<ManagedService, "id" | "name" | "backups">,
  skipFinalBackup: boolean | undefined,
  program: string,
): { readonly question: string; readonly result: string } {
  if (backups === null)
    return { question: `Delete ${name} and all its data, permanently?`, result: "Its data are deleted permanently." };
  if (skipFinalBackup === true) {
    const question = `Delete ${name} and all its data and automated backups, permanently?`;
    return { question, result: "Its data and automated backups are deleted permanently." };
  }
  const result = `Its backups are retained for 7 days; to create it again: ${program} services undelete ${id}`;
  return { question: `Delete ${name} and all its data?`, result };
}

import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { storeOperatorPassword, type Operator } from "../local-installation.ts";

const service = "OperatorService";
const operators: AdminList = {
  service,
  method: "ListOperators",
  plural: "operators",
  columns: ["username", "createdAt", "updatedAt"],
};

/** Commands for operators of the platform, and for users of several organizations. */
export function addOperators(admin: CliCommand): void {
  admin
    .command("reset-user <user>")
    .description("give a user of several organizations a new setup token; the old password becomes invalid immediately")
    .option("--yes", "do not ask for confirmation")
    .example("admin reset-user anna")
    .does(async ({ passwordClient, output, confirm }, userId: string, { yes }: { yes?: boolean }) => {
      await confirm(`Invalidate the password of ${userId}?`, yes);
      output.show(await (await passwordClient()).admin<object>(service, "ResetUser", { userId }));
    });

  const operator = admin.command("operator").description("operators of the platform");
  operator
    .command("create <name>")
    .description("create an operator; the password is shown only once")
    .example("admin operator create olga")
    .does(async ({ passwordClient, output }, username: string) =>
      output.show(await (await passwordClient()).admin<Operator>(service, "CreateOperator", { username })),
    );
  operator
    .command("list")
    .description("list all operators")
    .example("admin operator list")
    .does((context) => showAdminList(context, operators, {}, 1_000));
  operator
    .command("rotate <operator>")
    .description("give an operator a new password, shown only once; the old one becomes invalid immediately")
    .option("--yes", "do not ask for confirmation")
    .example("admin operator rotate olga")
    .does(async (context, username: string, { yes }: { yes?: boolean }) => {
      await context.confirm(`Give ${username} a new password? The old one becomes invalid immediately.`, yes);
      const rotated = await (await context.passwordClient()).admin<Operator>(service, "RotateOperator", { username });
      if (!(await storeOperatorPassword(context, rotated))) context.output.show(rotated);
    });
  operator
    .command("revoke <operator>")
    .description("revoke an operator's permissions immediately")
    .option("--yes", "do not ask for confirmation")
    .example("admin operator revoke olga")
    .does(async ({ passwordClient, output, confirm }, username: string, { yes }: { yes?: boolean }) => {
      await confirm(`Revoke the permissions of ${username}?`, yes);
      await (await passwordClient()).admin(service, "RevokeOperator", { username });
      output.info(`${username} is not an operator any more`);
    });
}

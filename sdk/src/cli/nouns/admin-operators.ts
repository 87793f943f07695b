import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { keepPassword, type Operator } from "../local-operator.ts";

const service = "OperatorService";
const operators: AdminList = {
  service,
  method: "ListOperators",
  plural: "operators",
  columns: ["username", "createdAt", "updatedAt"],
};

/** Operators of the platform, whom no organization can create, and people whose organizations cannot help them. */
export function addOperators(admin: CliCommand): void {
  admin
    .command("reset-user <person>")
    .description("give a person of several organizations a new setup token; the old password ends at once")
    .option("--yes", "do not ask")
    .example("admin reset-user anna")
    .does(async ({ person, output, confirm }, userId: string, { yes }: { yes?: boolean }) => {
      await confirm(`End the password of ${userId}?`, yes);
      output.show(await (await person()).admin<object>(service, "ResetUser", { userId }));
    });

  const operator = admin.command("operator").description("people who may run the platform");
  operator
    .command("create <name>")
    .description("make an operator; the password is shown this once")
    .example("admin operator create olga")
    .does(async ({ person, output }, username: string) =>
      output.show(await (await person()).admin<Operator>(service, "CreateOperator", { username })),
    );
  operator
    .command("list")
    .description("all operators")
    .example("admin operator list")
    .does((context) => showAdminList(context, operators, {}, 1_000));
  operator
    .command("rotate <operator>")
    .description("give an operator a new password, shown this once; the old one ends at once")
    .option("--yes", "do not ask")
    .example("admin operator rotate olga")
    .does(async (context, username: string, { yes }: { yes?: boolean }) => {
      await context.confirm(`Give ${username} a new password? The old one ends at once.`, yes);
      const rotated = await (await context.person()).admin<Operator>(service, "RotateOperator", { username });
      if (!(await keepPassword(context, rotated))) context.output.show(rotated);
    });
  operator
    .command("revoke <operator>")
    .description("end an operator's rights at once")
    .option("--yes", "do not ask")
    .example("admin operator revoke olga")
    .does(async ({ person, output, confirm }, username: string, { yes }: { yes?: boolean }) => {
      await confirm(`End the rights of ${username}?`, yes);
      await (await person()).admin(service, "RevokeOperator", { username });
      output.say(`${username} is no operator any more`);
    });
}

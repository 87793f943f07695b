import type { CliCommand } from "../command.ts";
import { hours, omitUndefined } from "../flag-values.ts";

const service = "AuthorityService";

/** Commands for the certificate authority and its rotation. */
export function addAuthority(admin: CliCommand): void {
  const authority = admin
    .command("authority")
    .description("the certificate authority of machines, engines and listeners");
  authority
    .command("show")
    .description("show trusted authorities, and the machines that a rotation waits for")
    .example("admin authority show")
    .does(async ({ passwordClient, output }) =>
      output.show(await (await passwordClient()).admin<object>(service, "GetAuthority")),
    );
  authority
    .command("rotate")
    .description("rotate to a new authority; clients must read the trusted authorities again within the overlap")
    .option(
      "--overlap-hours <hours>",
      "time in which both authorities are trusted before the new one signs, such as 720 or 30d; 720 by default",
      hours,
    )
    .option("--yes", "do not ask for confirmation")
    .example("admin authority rotate --overlap-hours 720")
    .does(async (context, { overlapHours, yes }: { overlapHours?: number; yes?: boolean }) => {
      await context.confirm(
        "Rotate to a new authority? Clients that trust only the old one will fail after the overlap.",
        yes,
      );
      const client = await context.passwordClient();
      context.output.show(await client.admin<object>(service, "RotateAuthority", omitUndefined({ overlapHours })));
    });
  authority
    .command("cancel")
    .description("cancel a rotation, as long as the old authority signs")
    .example("admin authority cancel")
    .does(async ({ passwordClient, output }) =>
      output.show(await (await passwordClient()).admin<object>(service, "CancelAuthorityRotation")),
    );
  authority
    .command("force")
    .description("continue a rotation without the machines that it waits for")
    .option("--yes", "do not ask for confirmation")
    .example("admin authority force")
    .does(async ({ passwordClient, output, confirm }, { yes }: { yes?: boolean }) => {
      await confirm("Continue without the machines that the rotation waits for?", yes);
      output.show(await (await passwordClient()).admin<object>(service, "ForceAuthorityRotation"));
    });
}

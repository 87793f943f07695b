import type { CliCommand } from "../command.ts";
import { given, wholeNumber } from "../flag-values.ts";

const service = "AuthorityService";

/** The certificate authority and its hand-over to the next one. */
export function addAuthority(admin: CliCommand): void {
  const authority = admin
    .command("authority")
    .description("the certificate authority of machines, engines and listeners");
  authority
    .command("show")
    .description("what is trusted, and which machines a rotation waits for")
    .example("admin authority show")
    .does(async ({ person, output }) => output.show(await (await person()).admin<object>(service, "GetAuthority")));
  authority
    .command("rotate")
    .description("hand over to a new authority; clients must read what they trust anew within the overlap")
    .option(
      "--overlap-hours <hours>",
      "how long both are trusted before the new one signs; 720 when not given",
      wholeNumber,
    )
    .option("--yes", "do not ask")
    .example("admin authority rotate --overlap-hours 720")
    .does(async (context, { overlapHours, yes }: { overlapHours?: number; yes?: boolean }) => {
      await context.confirm(
        "Hand over to a new authority? Clients with a file of the old one alone will fail then.",
        yes,
      );
      const client = await context.person();
      context.output.show(await client.admin<object>(service, "RotateAuthority", given({ overlapHours })));
    });
  authority
    .command("cancel")
    .description("give a rotation up, as long as the old authority signs")
    .example("admin authority cancel")
    .does(async ({ person, output }) =>
      output.show(await (await person()).admin<object>(service, "CancelAuthorityRotation")),
    );
  authority
    .command("force")
    .description("go on without the machines that a rotation waits for")
    .option("--yes", "do not ask")
    .example("admin authority force")
    .does(async ({ person, output, confirm }, { yes }: { yes?: boolean }) => {
      await confirm("Go on without the machines that are behind?", yes);
      output.show(await (await person()).admin<object>(service, "ForceAuthorityRotation"));
    });
}

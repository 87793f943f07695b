import type { CliCommand } from "../command.ts";
import { describeProfile, findProfile, forgetProfile, listProfiles, useProfile } from "../profiles.ts";

const columns = ["in_use", "name", "base_url", "organization", "who", "signed_in"];

export function addProfile(profile: CliCommand): void {
  profile
    .command("list")
    .description("all profiles, without their secrets")
    .example("profile list")
    .does(async (context) => context.output.list(listProfiles(context), columns));

  profile
    .command("use <profile>")
    .description("use it when no other one is named")
    .example("profile use work")
    .does(async (context, name: string) => {
      useProfile(context, name);
      context.output.say(`${name} is in use`);
    });

  profile
    .command("show [profile]")
    .description("one profile without its secrets; the one in use when none is named")
    .example("profile show")
    .does(async (context, name?: string) => {
      context.output.show(describeProfile(findProfile(context, name)));
    });

  profile
    .command("remove <profile>")
    .description("forget a profile with what it keeps")
    .option("--yes", "do not ask")
    .example("profile remove work")
    .does(async (context, name: string, { yes }: { yes?: boolean }) => {
      const { profile: kept } = findProfile(context, name);
      const secrets = kept.api_key_secret !== undefined || kept.token !== undefined;
      await context.confirm(`Forget ${name}${secrets ? " with the credential that it keeps" : ""}?`, yes);
      forgetProfile(context, name);
      context.output.say(`${name} is forgotten`);
    });
}

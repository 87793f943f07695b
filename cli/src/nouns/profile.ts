import type { CliCommand } from "../command.ts";
import { describeProfile, findProfile, deleteProfile, listProfiles, useProfile } from "../profiles.ts";

const columns = ["in_use", "name", "base_url", "organization", "who", "signed_in"];

export function addProfile(profile: CliCommand): void {
  profile
    .command("list")
    .description("list all profiles, without their secrets")
    .example("profile list")
    .does(async (context) => context.output.list(listProfiles(context), columns));

  profile
    .command("use <profile>")
    .description("make a profile the current one")
    .example("profile use work")
    .does(async (context, name: string) => {
      useProfile(context, name);
      context.output.info(`${name} is in use`);
    });

  profile
    .command("show [profile]")
    .description("show a profile without its secrets; the current one by default")
    .example("profile show")
    .does(async (context, name?: string) => {
      context.output.show(describeProfile(findProfile(context, name)));
    });

  profile
    .command("remove <profile>")
    .description("delete a profile with its credentials")
    .option("--yes", "do not ask for confirmation")
    .example("profile remove work")
    .does(async (context, name: string, { yes }: { yes?: boolean }) => {
      const { profile: stored } = findProfile(context, name);
      const secrets = stored.api_key_secret !== undefined || stored.token !== undefined;
      await context.confirm(`Delete the profile ${name}${secrets ? " with its credentials" : ""}?`, yes);
      deleteProfile(context, name);
      context.output.info(`${name} is deleted`);
    });
}

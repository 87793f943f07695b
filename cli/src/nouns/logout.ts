import { Unauthenticated } from "@holdfast/sdk/errors.ts";
import type { CliCommand } from "../command.ts";
import { NotSignedIn } from "../exit-code.ts";
import { findProfile, removeSession } from "../profiles.ts";

export function addLogout(logout: CliCommand): void {
  logout
    .example("logout")
    .example("logout --profile work")
    .does(async (context) => {
      const found = findProfile(context);
      const { name, profile } = found;
      if (profile.token === undefined && profile.api_key_id === undefined)
        throw new NotSignedIn(`${name} is signed out`);
      // An API key remains valid, because it belongs to the organization; a session belongs to this profile.
      if (profile.username !== undefined && profile.token !== undefined) {
        const client = context.clientOf({ kind: "bearer", token: profile.token });
        try {
          await client.tokens.delete((await client.me()).id);
        } catch (error) {
          // The token has expired or was deleted before.
          if (!(error instanceof Unauthenticated)) throw error;
        }
      }
      removeSession(context, found);
      context.note(`${name} is signed out`);
    });
}

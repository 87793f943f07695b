import type { CreatedUser } from "@holdfast/sdk/responses.ts";
import { Notice } from "../parts/notice.tsx";
import { Copyable } from "../parts/parts.tsx";
import { setUpLink } from "../session/account.ts";

/** The link and the token by which a user sets a password; the page has them once. */
export function SetUpNotice({ user: { id, setup_token: token } }: { readonly user: CreatedUser }) {
  return (
    <Notice tone="good">
      <p>
        Pass one of these on to {id}, who sets the password once and within 72 hours: the link in a browser, or the
        token by <code>holdfast login --set-up</code>.
      </p>
      <Copyable text={setUpLink({ username: id, token })} label="the link to set the password" />
      <Copyable text={token} label="the setup token" />
    </Notice>
  );
}

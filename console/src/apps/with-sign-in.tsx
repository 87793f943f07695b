import { NotFound } from "@holdfast/sdk/errors.ts";
import type { AppAuth } from "@holdfast/sdk/responses.ts";
import type { ComponentChildren } from "preact";
import { useLive } from "../live/use-live.ts";
import { ButtonLink } from "../parts/button.tsx";
import { Empty } from "../parts/notice.tsx";
import { Card, Loading } from "../parts/parts.tsx";
import { hrefOf } from "../router/location.ts";
import { account } from "../session/account.ts";

interface WithSignInProps {
  readonly appId: string;
  readonly children: ComponentChildren;
}

/** The content for an app with a sign-in; for another one, the way to enable it. */
export function WithSignIn({ appId, children }: WithSignInProps) {
  const { data, error } = useLive<AppAuth>(`sign-in ${appId}`, (signal) =>
    account.value.client.auth.get(appId, { signal }),
  );
  if (error instanceof NotFound)
    return (
      <Card>
        <Empty icon="door" title="The app has no sign-in yet">
          <p class="quiet">Its users and clients are here once the sign-in is enabled.</p>
          <ButtonLink kind="primary" href={hrefOf("apps", appId, "sign-in")}>
            Enable the sign-in
          </ButtonLink>
        </Empty>
      </Card>
    );
  return data === undefined && error === undefined ? <Loading rows={6} /> : <>{children}</>;
}

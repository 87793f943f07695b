import type { App } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { Age, Badge, PageHead } from "../parts/parts.tsx";
import { hrefOf } from "../router/location.ts";
import { account } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import { NewApp } from "./new-app.tsx";

/** Apps of the organization, which attach to databases and may have a sign-in. */
export function AppsPage() {
  const live = useLive<readonly App[]>("apps", (signal) => account.value.client.apps.list({ signal }).toArray());
  return (
    <>
      <PageHead
        title="Apps and sign-in"
        about="Apps on the platform and outside of it, with their databases and the sign-in of their users"
      />
      <LiveTable
        title="Apps"
        live={live}
        keyOf={({ id }) => id}
        icon="door"
        empty="No apps yet"
        columns={[
          [
            "Name",
            ({ id, name }) => (
              <a class="strong" href={hrefOf("apps", id)}>
                {name}
              </a>
            ),
          ],
          ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
          ["Runs", ({ hosted }) => (hosted === null ? "outside of the platform" : hosted.image_ref)],
          ["Address", ({ hosted, home_url: url }) => <span class="quiet">{hosted?.url ?? url}</span>],
          ["Attachments", ({ attachments }) => attachments.length],
          ["Created", ({ created_at: time }) => <Age time={time} />],
        ]}
      >
        <p class="quiet">
          Run an image on the platform, or register an app that you run yourself. Then attach a database, and enable the
          sign-in of its users.
        </p>
      </LiveTable>
      <NewApp />
    </>
  );
}

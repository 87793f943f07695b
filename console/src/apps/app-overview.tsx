import { ActionButton } from "../parts/action-button.tsx";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Age, Card, Copyable, Facts } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import type { AppProps, HostedAppProps } from "./app-props.ts";
import { changeRefusal } from "./hosted-view.ts";
import { ProblemNotice } from "./problem-notice.tsx";

/** Facts of the app, the state of its programs if the platform runs it, and its deletion. */
export function AppOverview({ app, reload }: AppProps) {
  const { apps } = account.value.client;
  const { hosted } = app;
  return (
    <>
      {hosted !== null && <ProblemNotice app={app} hosted={hosted} reload={reload} />}
      <Card title="About">
        <Facts
          facts={[
            ["Runs", hosted === null ? "outside of the platform" : "on machines of the platform"],
            ...(hosted === null
              ? []
              : ([
                  ["Image", hosted.image_ref],
                  ...(hosted.serves_newest ? [] : ([["Serves", hosted.serving_image_ref ?? "none"]] as const)),
                  ["Deployment", hosted.deployment_number],
                  ["Machines", hosted.replicas],
                  ["Port", hosted.port],
                  ["Floating IP", hosted.floating_ip ?? "none"],
                ] as const)),
            ["Home page", app.home_url ?? "none"],
            ["Attachments", app.attachments.length],
            ["Domains", app.domains.map(({ name }) => name).join(", ") || "none"],
            ["Created", <Age key="created" time={app.created_at} />],
          ]}
        />
      </Card>
      {hosted !== null && (
        <Card title="Address">
          <Copyable text={hosted.url} label="the address of the app" />
        </Card>
      )}
      {hosted !== null && <Programs app={app} hosted={hosted} reload={reload} />}
      <HomePage app={app} reload={reload} />
      <Card title="Identifier">
        <Copyable text={app.id} label="id of the app" />
      </Card>
      <DeletionCard
        kind="app"
        name={app.name}
        refusal={refusalOf("apps:write") ?? changeRefusal(app)}
        destroy={async () => {
          await apps.delete(app.id);
          openPage(hrefOf("apps"));
        }}
      >
        <p>
          {hosted === null
            ? "The app's sign-in ends."
            : "Its programs and its sign-in end, and its name and its machines are deleted."}{" "}
          Its databases and their data stay.
        </p>
      </DeletionCard>
    </>
  );
}

function Programs({ app, reload }: HostedAppProps) {
  const { apps } = account.value.client;
  const refusal = refusalOf("apps:write") ?? changeRefusal(app);
  return (
    <Card title="Programs">
      <div class="stack">
        <p class="quiet">
          {app.status === "Stopped"
            ? "The app is stopped: clients get 503. Its machines and its name remain."
            : "A restart deploys the same image again without a failed request. While the app is stopped, clients get 503."}
        </p>
        <div class="row">
          {app.status === "Stopped" ? (
            <ActionButton refusal={refusal} run={() => apps.start(app.id).then(reload)}>
              Start
            </ActionButton>
          ) : (
            <>
              <ActionButton refusal={refusal} run={() => apps.restart(app.id).then(reload)}>
                Restart
              </ActionButton>
              <ActionButton refusal={refusal} run={() => apps.stop(app.id).then(reload)}>
                Stop
              </ActionButton>
            </>
          )}
        </div>
      </div>
    </Card>
  );
}

function HomePage({ app, reload }: AppProps) {
  const form = useForm({ home: app.home_url ?? "" });
  return (
    <Card title="Home page">
      <FormBody
        form={form}
        action="Save"
        refusal={refusalOf("apps:write")}
        send={async ({ home }) => {
          await account.value.client.apps.update(app.id, { home_url: home.trim() === "" ? null : home.trim() });
          showToast("good", "Saved");
          reload();
        }}
      >
        <TextField
          label="Address of the home page"
          help="Such as https://shop.example.com; empty for none"
          {...form.field("home", "home_url")}
          autocomplete="off"
        />
      </FormBody>
    </Card>
  );
}

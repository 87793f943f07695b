import { priceText } from "../format.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Card, Copyable, Facts, Secret } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { monthlyCost } from "../services/service-view.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account, refusalOf } from "../session/account.ts";
import type { HostedAppProps } from "./app-props.ts";
import { changeRefusal } from "./hosted-view.ts";

/** Number of machines, times of a deployment, floating IP, and the login form of a hosted app. */
export function HostingTab(props: HostedAppProps) {
  return (
    <>
      <Scale key={props.hosted.replicas} {...props} />
      <Times key={`${props.hosted.start_timeout_seconds} ${props.hosted.drain_seconds}`} {...props} />
      <FloatingIp {...props} />
      <LoginForm {...props} />
    </>
  );
}

function Scale({ app, hosted, reload }: HostedAppProps) {
  const catalog = useCatalog();
  const form = useForm({ replicas: String(hosted.replicas) });
  const { plan_name, storage_size_gb, storage_tier } = hosted;
  const cost = (nodes: number) => {
    const monthly = catalog && monthlyCost(catalog, { plan_name, storage_size_gb, storage_tier, nodes });
    return monthly === undefined || Number.isNaN(monthly) ? "unknown" : priceText(monthly, catalog?.currency ?? "USD");
  };
  return (
    <Card title="Machines">
      <FormBody
        form={form}
        action="Scale"
        kind="primary"
        refusal={
          refusalOf("apps:write") ??
          changeRefusal(app) ??
          (form.values.replicas === String(hosted.replicas) ? "Choose another number first." : undefined)
        }
        send={async ({ replicas }) => {
          await account.value.client.apps.update(app.id, { replicas: Number(replicas) });
          reload();
        }}
      >
        <Facts
          facts={[
            ["Each machine", `${plan_name}, ${storage_size_gb} GB ${storage_tier}`],
            ["Zone", hosted.zone],
            ["Cost a month now", cost(hosted.replicas)],
            ["Afterwards", cost(Number(form.values.replicas))],
          ]}
        />
        <TextField
          label="Number of machines"
          help="On different hosts if possible; a machine that is removed first ends its requests"
          type="number"
          min={1}
          max={10}
          {...form.field("replicas")}
        />
      </FormBody>
    </Card>
  );
}

/** The times of a deployment. */
function Times({ app, hosted, reload }: HostedAppProps) {
  const form = useForm({ start: String(hosted.start_timeout_seconds), drain: String(hosted.drain_seconds) });
  const { start, drain } = form.values;
  const isSame = start === String(hosted.start_timeout_seconds) && drain === String(hosted.drain_seconds);
  return (
    <Card title="Times of a deployment">
      <FormBody
        form={form}
        action="Save"
        refusal={refusalOf("apps:write") ?? changeRefusal(app) ?? (isSame ? "Nothing was changed." : undefined)}
        send={async (_, __, edited) => {
          const change = {
            ...(edited.start !== undefined && { start_timeout_seconds: Number(edited.start) }),
            ...(edited.drain !== undefined && { drain_seconds: Number(edited.drain) }),
          };
          await account.value.client.apps.update(app.id, change);
          showToast("good", "Saved");
          reload();
        }}
      >
        <div class="halves">
          <TextField
            label="Seconds to become ready"
            help="A release that is not ready by then fails, and the one before continues to serve"
            type="number"
            {...form.field("start", "start_timeout_seconds")}
          />
          <TextField
            label="Seconds for requests in progress"
            help="After another release serves; then the old one ends"
            type="number"
            {...form.field("drain", "drain_seconds")}
          />
        </div>
      </FormBody>
    </Card>
  );
}

function FloatingIp({ app, hosted: { floating_ip: ip }, reload }: HostedAppProps) {
  const { apps } = account.value.client;
  const refusal = refusalOf("apps:write") ?? changeRefusal(app);
  return (
    <Card title="Floating IP">
      <div class="stack">
        <p class="quiet">An address that belongs to this app alone, and outlives its machines.</p>
        {ip !== null && <Copyable text={ip} label="the floating IP" />}
        <div class="row">
          {ip === null ? (
            <ActionButton refusal={refusal} run={() => apps.assignFloatingIp(app.id).then(reload)}>
              Assign an address
            </ActionButton>
          ) : (
            <ActionButton
              refusal={refusal}
              run={() => apps.releaseFloatingIp(app.id).then(reload)}
              done={`${ip} is released`}
            >
              Release the address
            </ActionButton>
          )}
        </div>
      </div>
    </Card>
  );
}

function LoginForm({ app, hosted: { auth }, reload }: HostedAppProps) {
  const { apps } = account.value.client;
  const isOn = auth === "login_form";
  const secretRefusal = refusalOf("apps:secrets");
  return (
    <Card title="Login form">
      <div class="stack">
        <p class="quiet">
          {isOn
            ? "Clients sign in by a form before they reach the app."
            : "All clients reach the app. With a login form they first sign in by a user name and a password."}
        </p>
        {isOn && (
          <>
            <Facts facts={[["User name", "admin"]]} />
            {secretRefusal === undefined ? (
              <Secret load={async () => (await apps.credentials(app.id)).password} label="the password of the form" />
            ) : (
              <Notice>{secretRefusal}</Notice>
            )}
          </>
        )}
        <div class="row">
          <ActionButton
            refusal={refusalOf("apps:write") ?? changeRefusal(app)}
            run={() => apps.update(app.id, { auth: isOn ? "none" : "login_form" }).then(reload)}
          >
            {isOn ? "Turn off" : "Turn on"}
          </ActionButton>
        </div>
      </div>
    </Card>
  );
}

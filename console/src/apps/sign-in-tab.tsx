import { NotFound } from "@holdfast/sdk/errors.ts";
import type { AppAuth, AuthKey } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { ErrorNotice, Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Copyable, Facts, Loading } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { pollMsOf, toneOf } from "../tone.ts";
import type { AppProps } from "./app-props.ts";
import { authOf } from "./app-view.ts";
import { MailTest, ProviderForm, ProvidersCard } from "./providers-card.tsx";

interface AuthProps extends AppProps {
  readonly auth: AppAuth;
}

interface EnableProps extends AppProps {
  /** The sign-in that failed or was disabled; undefined for an app that never had one. */
  readonly auth: AppAuth | undefined;
}

/** The issuer of the app with its keys, or the form that enables the sign-in. */
export function SignInTab({ app }: AppProps) {
  const { auth } = account.value.client;
  const live = useLive<AppAuth>(`sign-in ${app.id}`, (signal) => auth.get(app.id, { signal }), {
    pollIntervalMs: (data) => pollMsOf(data && [data.status]),
  });
  const { data, error, reload } = live;
  const isAbsent = error instanceof NotFound;
  if (data === undefined && !isAbsent)
    return error === undefined ? <Loading rows={6} /> : <ErrorNotice error={error} onRetry={reload} />;
  const isOff = isAbsent || data?.status === "Disabled" || data?.status === "Failed";
  return (
    <>
      {data !== undefined && <Issuer app={app} auth={data} reload={reload} />}
      {/* The same form before and after an attempt, so that its input remains. */}
      {isOff && <Enable key="enable" app={app} auth={data} reload={reload} />}
      {data !== undefined && (
        <>
          {!isOff && <Appearance auth={data} reload={reload} />}
          <Keys appId={app.id} />
          {!isOff && (
            <>
              <ProvidersCard auth={data} reload={reload} />
              <ProviderForm auth={data} reload={reload} />
              <MailTest auth={data} />
            </>
          )}
        </>
      )}
    </>
  );
}

/** State and settings of the issuer, and the button that disables it. */
function Issuer({ app, auth: data, reload }: AuthProps) {
  const { auth } = account.value.client;
  const refusal = refusalOf("apps:write");
  return (
    <>
      {data.failure_reason !== null && <Notice tone="bad">{data.failure_reason}</Notice>}
      {data.health.reason !== null && <Notice tone="warn">{data.health.reason}</Notice>}
      <Card
        title="Issuer"
        actions={
          data.status === "Active" && (
            <DestroyButton
              text="Disable"
              refusal={refusal}
              title="Disable the sign-in"
              name={app.name}
              action="Disable sign-in"
              destroy={() => auth.disable(app.id).then(reload)}
            >
              <p>Users can no longer sign in. Keys and users stay, and the sign-in can be enabled again.</p>
            </DestroyButton>
          )
        }
      >
        <div class="stack">
          <Copyable text={data.issuer_url} label="the URL of the issuer" />
          <Facts
            facts={[
              [
                "State",
                <Badge key="state" tone={toneOf(data.status)}>
                  {data.status}
                </Badge>,
              ],
              [
                "Health",
                <Badge key="health" tone={toneOf(data.health.status)}>
                  {data.health.status}
                </Badge>,
              ],
              ["Sign-up", data.sign_up],
              ["Mails an hour", data.mails_per_hour],
              ["Mail server", data.smtp.host === "" ? "none" : `${data.smtp.host}:${data.smtp.port}`],
              ["Sender", data.smtp.from_address],
              ["Domain", data.custom_domain ?? data.fallback_domain],
              ["Providers", data.idp_providers.map(({ provider }) => provider).join(", ") || "none"],
            ]}
          />
        </div>
      </Card>
    </>
  );
}

/** The form that enables the sign-in; after an earlier one it has its mail server, without user name and password. */
function Enable({ app, auth, reload }: EnableProps) {
  const databases = app.attachments.filter(({ database_name: name }) => name !== "");
  const smtp = auth !== undefined && auth.smtp.host !== "" ? auth.smtp : undefined;
  const form = useForm({
    attachment: auth?.attachment_id || (databases[0]?.id ?? ""),
    smtpHost: smtp?.host ?? "",
    smtpPort: String(smtp?.port ?? 587),
    smtpUser: "",
    smtpPassword: "",
    fromAddress: smtp?.from_address ?? "",
    fromName: smtp?.from_name ?? app.name,
    redirects: "",
  });
  const isAttached = databases.length > 0;
  return (
    <Card title="Enable the sign-in">
      <FormBody
        form={form}
        action="Enable sign-in"
        kind="primary"
        refusal={
          refusalOf("apps:write") ??
          refusalOf("services:write") ??
          (isAttached ? undefined : "Attach a PostgreSQL service first.")
        }
        send={async (input, idempotencyKey) => {
          await account.value.client.auth.enable(app.id, authOf(input), { idempotencyKey });
          reload();
        }}
      >
        <p class="quiet">
          The app gets its own OpenID Connect issuer. Users sign in by a code in a mail, and are rows in your database.
        </p>
        {!isAttached && (
          <Notice tone="warn">
            <a href={hrefOf("apps", app.id, "attachments")}>Attach a PostgreSQL service</a> first.
          </Notice>
        )}
        <div class="halves">
          <SelectField
            label="Database of the users"
            {...form.field("attachment", "attachment_id")}
            options={databases.map(({ id, database_name: name }) => [id, name] as const)}
          />
          <TextField label="Mail server" help="Such as smtp.example.com" {...form.field("smtpHost", "smtp.host")} />
          <TextField label="Port" type="number" {...form.field("smtpPort", "smtp.port")} />
          <TextField label="User name at the server" {...form.field("smtpUser", "smtp.username")} autocomplete="off" />
          <TextField
            label="Password at the server"
            type="password"
            {...form.field("smtpPassword", "smtp.password")}
            autocomplete="off"
          />
          <TextField label="Sender's address" {...form.field("fromAddress", "smtp.from_address")} />
          <TextField label="Sender's name" {...form.field("fromName", "smtp.from_name")} />
        </div>
        <TextField
          label="Addresses to which sign-ins return"
          help="One per line; empty for /auth/callback of the app"
          lines
          {...form.field("redirects", "redirect_uris")}
        />
      </FormBody>
    </Card>
  );
}

function Appearance({ auth, reload }: { readonly auth: AppAuth; readonly reload: () => void }) {
  const form = useForm({
    title: auth.theme.display_name,
    color: auth.theme.brand_color,
    logo: auth.theme.logo_url ?? "",
    signUp: auth.sign_up as string,
  });
  return (
    <Card title="Appearance and sign-up">
      <FormBody
        form={form}
        action="Save"
        kind="primary"
        refusal={refusalOf("apps:write")}
        send={async ({ title, color, logo }, _, { signUp, ...edited }) => {
          const theme = { display_name: title, brand_color: color, ...(logo !== "" && { logo_url: logo }) };
          await account.value.client.auth.update(auth.app_service_id, {
            ...(Object.keys(edited).length > 0 && { theme }),
            ...(signUp !== undefined && { sign_up: signUp === "closed" ? "closed" : "open" }),
          });
          showToast("good", "Saved");
          reload();
        }}
      >
        <div class="halves">
          <TextField label="Name on the pages" {...form.field("title", "theme.display_name")} />
          <TextField label="Color" help="Such as #3b4fd8" {...form.field("color", "theme.brand_color")} />
          <TextField label="Address of the logo" {...form.field("logo", "theme.logo_url")} />
          <SelectField
            label="Sign-up"
            {...form.field("signUp", "sign_up")}
            options={[
              ["open", "Open: everyone with a mail address"],
              ["closed", "Closed: only users that you add"],
            ]}
          />
        </div>
      </FormBody>
    </Card>
  );
}

function Keys({ appId }: { readonly appId: string }) {
  const { auth } = account.value.client;
  const live = useLive<readonly AuthKey[]>(
    `sign-in keys ${appId}`,
    async (signal) => (await auth.keys(appId, { signal })).keys,
  );
  return (
    <LiveTable
      title="Signing keys"
      live={live}
      keyOf={({ kid }) => kid}
      icon="key"
      empty="No keys"
      actions={
        <ActionButton
          refusal={refusalOf("apps:write")}
          run={() => auth.rotateKey(appId).then(live.reload)}
          done="The next key signs"
        >
          Rotate
        </ActionButton>
      }
      columns={[
        ["Key", ({ kid }) => <span class="mono small">{kid}</span>],
        ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
        ["Algorithm", ({ algorithm }) => algorithm],
        ["Signs since", ({ activated_at: time }) => <Age time={time} />],
        ["Retires", ({ retires_at: time }) => <Age time={time} />],
      ]}
    />
  );
}

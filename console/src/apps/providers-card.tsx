import type { AppAuth, AuthIdpProvider } from "@holdfast/sdk/responses.ts";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Empty } from "../parts/notice.tsx";
import { Card, Copyable } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import { providerOf } from "./app-view.ts";

interface ProvidersProps {
  readonly auth: AppAuth;
  readonly reload: () => void;
}

/** The other providers that users of the app sign in with, each with the address to register there. */
export function ProvidersCard({ auth: { app_service_id: appId, idp_providers: providers }, reload }: ProvidersProps) {
  const refusal = refusalOf("apps:write");
  return (
    <Card title="Other providers" flush={providers.length > 0}>
      {providers.length === 0 ? (
        <Empty icon="key" title="Users sign in by mail alone" />
      ) : (
        <Table
          title="Other providers"
          entries={providers}
          keyOf={({ provider }) => provider}
          columns={[
            ["Provider", ({ provider }) => <b>{provider}</b>],
            ["Issuer", ({ issuer_url: url }) => url],
            ["Client", ({ client_id: id }) => <span class="mono small">{id}</span>],
            ["Address to register there", (provider) => <CallbackUrl provider={provider} />],
            [
              "",
              ({ provider }) => (
                <DestroyButton
                  text="Delete"
                  refusal={refusal}
                  title={`Delete the provider ${provider}`}
                  name={provider}
                  action="Delete provider"
                  destroy={() => account.value.client.auth.deleteProvider(appId, provider).then(reload)}
                >
                  <p>Its users sign in by mail from then on, with the same accounts.</p>
                </DestroyButton>
              ),
            ],
          ]}
        />
      )}
    </Card>
  );
}

function CallbackUrl({ provider: { provider, callback_url: url } }: { readonly provider: AuthIdpProvider }) {
  return <Copyable text={url} label={`the address to register at ${provider}`} />;
}

/** The form that adds a provider, or changes the one of this kind. */
export function ProviderForm({ auth: { app_service_id: appId, idp_providers: stored }, reload }: ProvidersProps) {
  const form = useForm({ provider: "google", issuer: "", client: "", secret: "" });
  const isGoogle = form.values.provider === "google";
  return (
    <Card title="Set a provider">
      <FormBody
        form={form}
        action="Set provider"
        refusal={refusalOf("apps:write")}
        send={async (input) => {
          await account.value.client.auth.putProvider(appId, input.provider, providerOf(input, stored));
          form.set("client", "");
          form.set("secret", "");
          showToast("good", "Users can sign in by the provider");
          reload();
        }}
      >
        <p class="quiet">
          Register the app at the provider first: you get a client and its secret there, and enter the address that the
          list above has for it afterwards.
        </p>
        <div class="halves">
          <SelectField
            label="Provider"
            {...form.field("provider")}
            options={[
              ["google", "Google"],
              ["oidc", "OpenID Connect"],
            ]}
          />
          {!isGoogle && (
            <TextField
              label="Issuer"
              help="Such as https://login.example.com"
              {...form.field("issuer", "issuer_url")}
            />
          )}
          <TextField label="Client id" {...form.field("client", "client_id")} autocomplete="off" />
          <TextField
            label="Client secret"
            help="Empty: unchanged"
            type="password"
            {...form.field("secret", "client_secret")}
            autocomplete="off"
          />
        </div>
      </FormBody>
    </Card>
  );
}

/** The form that sends a test mail through the app's mail server. */
export function MailTest({ auth: { app_service_id: appId } }: Pick<ProvidersProps, "auth">) {
  const form = useForm({ to: "" });
  return (
    <Card title="Test of the mail server">
      <FormBody
        form={form}
        action="Send a test mail"
        refusal={refusalOf("apps:write")}
        send={async ({ to }) => {
          const { success, error } = await account.value.client.auth.testSmtp(appId, to);
          if (!success) throw new Error(error ?? "The mail server refused the mail.");
          showToast("good", "The mail server accepted the mail");
        }}
      >
        <TextField label="Recipient" {...form.field("to")} autocomplete="off" />
      </FormBody>
    </Card>
  );
}

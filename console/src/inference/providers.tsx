import type { InferenceProvider } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { CheckField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Age, Badge, Card } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";

/** Providers of models with their addresses. Their API keys are never in a response. */
export function Providers({ organization }: { readonly organization: string }) {
  const { inference } = account.value.client;
  const live = useLive<readonly InferenceProvider[]>(`providers ${organization}`, (signal) =>
    inference.providers(organization, { signal }),
  );
  return (
    <>
      <LiveTable
        title="Providers"
        live={live}
        keyOf={({ provider }) => provider}
        icon="spark"
        empty="No provider yet"
        columns={[
          ["Provider", ({ provider }) => <b>{provider}</b>],
          [
            "State",
            ({ enabled, has_api_key: hasKey }) => (
              <Badge tone={enabled && hasKey ? "good" : "warn"}>
                {hasKey ? (enabled ? "enabled" : "disabled") : "without an API key"}
              </Badge>
            ),
          ],
          ["Address", ({ base_url: url }) => <span class="quiet">{url ?? "of the provider"}</span>],
          ["In the EU", ({ eu_route: isEu }) => (isEu ? "yes" : "no")],
          ["Changed", ({ updated_at: time }) => <Age time={time} />],
          [
            "",
            ({ provider }) => (
              <DestroyButton
                text="Delete"
                refusal={refusalOf("inference:manage")}
                title={`Delete ${provider}`}
                name={provider}
                action="Delete provider"
                destroy={() => inference.deleteProvider(organization, provider).then(live.reload)}
              >
                <p>Calls to models of the provider fail immediately. Its API key is deleted.</p>
              </DestroyButton>
            ),
          ],
        ]}
      >
        <p class="quiet">Enter the API key of a provider below. It is stored encrypted.</p>
      </LiveTable>
      <ProviderForm organization={organization} reload={live.reload} />
    </>
  );
}

interface ProviderFormProps {
  readonly organization: string;
  readonly reload: () => void;
}

function ProviderForm({ organization, reload }: ProviderFormProps) {
  const form = useForm({ provider: "", apiKey: "", url: "", isEnabled: true });
  return (
    <Card title="Set a provider">
      <FormBody
        form={form}
        action="Save provider"
        icon="plus"
        refusal={refusalOf("inference:manage")}
        send={async ({ provider, apiKey, url, isEnabled }, idempotencyKey) => {
          const body = {
            provider,
            enabled: isEnabled,
            ...(apiKey !== "" && { api_key: apiKey }),
            ...(url !== "" && { base_url: url }),
          };
          await account.value.client.inference.putProvider(organization, body, { idempotencyKey });
          form.set("apiKey", "");
          reload();
        }}
      >
        <div class="halves">
          <TextField
            label="Provider"
            help="A name of the installation's catalog, such as openai or mistral"
            {...form.field("provider")}
            autocomplete="off"
          />
          <TextField
            label="API key"
            help="Empty to leave the stored key"
            type="password"
            {...form.field("apiKey", "api_key")}
            autocomplete="off"
          />
          <TextField
            label="Address"
            help="Such as https://models.example.com/v1; empty for the provider's own"
            {...form.field("url", "base_url")}
            autocomplete="off"
          />
        </div>
        <CheckField
          label="Calls may use the provider"
          checked={form.values.isEnabled}
          onInput={(isEnabled) => form.set("isEnabled", isEnabled)}
        />
      </FormBody>
    </Card>
  );
}

import { useState } from "preact/hooks";
import type { CreatedInferenceKey, InferenceKey } from "@holdfast/sdk/responses.ts";
import { numberText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Copyable } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import { numberOf } from "./inference-view.ts";

/** Keys with which applications call models; the page shows the secret of a new key once. */
export function InferenceKeys({ organization }: { readonly organization: string }) {
  const { inference } = account.value.client;
  const [created, setCreated] = useState<CreatedInferenceKey | undefined>();
  const live = useLive<readonly InferenceKey[]>(`inference keys ${organization}`, (signal) =>
    inference.keys(organization, { signal }).toArray(),
  );
  const refusal = refusalOf("inference:manage");
  const setStatus = ({ id, status }: InferenceKey) =>
    inference.updateKey(organization, id, { status: status === "active" ? "suspended" : "active" }).then(live.reload);
  return (
    <>
      <LiveTable
        title="Inference keys"
        live={live}
        keyOf={({ id }) => id}
        icon="key"
        empty="No keys yet"
        columns={[
          ["Name", ({ name }) => <b>{name}</b>],
          ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
          ["Tokens a month", ({ monthly_token_limit: limit }) => limitText(limit)],
          ["Requests a minute", ({ rate_limit_rpm: limit }) => limitText(limit)],
          ["Expires", ({ expires_at: time }) => <Age time={time} />],
          [
            "",
            (key) => (
              <span class="row end">
                <ActionButton kind="plain" refusal={refusal} run={() => setStatus(key)}>
                  {key.status === "active" ? "Suspend" : "Resume"}
                </ActionButton>
                <DestroyButton
                  text="Rotate"
                  refusal={refusal}
                  title={`Give ${key.name} a new secret`}
                  name={key.name}
                  action="Rotate key"
                  destroy={async () => setCreated(await inference.rotateKey(organization, key.id))}
                >
                  <p>The previous secret is refused immediately.</p>
                </DestroyButton>
                <DestroyButton
                  text="Delete"
                  refusal={refusal}
                  title={`Delete ${key.name}`}
                  name={key.name}
                  action="Delete key"
                  destroy={() => inference.deleteKey(organization, key.id).then(live.reload)}
                >
                  <p>Calls with the key are refused immediately. Its usage remains stored.</p>
                </DestroyButton>
              </span>
            ),
          ],
        ]}
      >
        <p class="quiet">Each key has its own limits. Create one for each application.</p>
      </LiveTable>
      {created && (
        <Notice tone="good">
          <p>The secret of {created.name} is here once. Store it now.</p>
          <Copyable text={created.secret} label="the secret of the key" />
        </Notice>
      )}
      <NewKey
        organization={organization}
        onCreate={(key) => {
          setCreated(key);
          live.reload();
        }}
      />
    </>
  );
}

function limitText(limit: number | null): string {
  return limit === null ? "no limit" : numberText(limit);
}

interface NewKeyProps {
  readonly organization: string;
  readonly onCreate: (key: CreatedInferenceKey) => void;
}

function NewKey({ organization, onCreate }: NewKeyProps) {
  const form = useForm({ name: "", tokens: "", requests: "" });
  return (
    <Card title="Create an inference key">
      <FormBody
        form={form}
        action="Create key"
        icon="plus"
        refusal={refusalOf("inference:manage")}
        send={async ({ name, tokens, requests }, idempotencyKey) => {
          const body = { name, monthly_token_limit: numberOf(tokens), rate_limit_rpm: numberOf(requests) };
          onCreate(await account.value.client.inference.createKey(organization, body, { idempotencyKey }));
          form.set("name", "");
        }}
      >
        <div class="halves">
          <TextField label="Name" {...form.field("name")} autocomplete="off" />
          <TextField
            label="Tokens a month"
            help="Empty for no limit"
            type="number"
            {...form.field("tokens", "monthly_token_limit")}
          />
          <TextField
            label="Requests a minute"
            help="Empty for no limit"
            type="number"
            {...form.field("requests", "rate_limit_rpm")}
          />
        </div>
      </FormBody>
    </Card>
  );
}

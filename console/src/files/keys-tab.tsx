import { useState } from "preact/hooks";
import type { FilesAccess, FilesKey } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Card, Copyable } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import type { TabProps } from "../services/tab-props.ts";
import { account, refusalOf } from "../session/account.ts";
import { accesses, accessText, keyText } from "./files-view.ts";

/** Keys of a files service; the secret of a new one is on the page once. */
export function KeysTab({ service: { id } }: TabProps) {
  const { files } = account.value.client;
  const [created, setCreated] = useState<FilesKey | undefined>();
  const live = useLive<readonly FilesKey[]>(
    `files keys ${id}`,
    (signal) => files.keys(id, { signal, limit: 200 }).toArray(),
    { service: id },
  );
  const refusal = refusalOf("files:write");
  const form = useForm<{ name: string; access: FilesAccess }>({ name: "", access: "readwrite" });
  return (
    <>
      {created && (
        <Notice tone="good">
          <p>The secret of {created.name} is here once. Store it now; it is accepted within 5 seconds.</p>
          <Copyable text={keyText(created)} label="the key and its secret" />
        </Notice>
      )}
      <LiveTable
        title="Keys"
        live={live}
        keyOf={({ id: key }) => key}
        icon="key"
        empty="No keys yet"
        columns={[
          ["Name", ({ name }) => <b>{name}</b>],
          ["Access key id", ({ access_key_id: key }) => <span class="mono small">{key}</span>],
          ["May", ({ access }) => accessText(access)],
          ["Created", ({ created_at: time }) => <Age time={time} />],
          [
            "",
            (key) => (
              <DestroyButton
                text="Revoke"
                refusal={refusal}
                title={`Revoke ${key.name}`}
                name={key.name}
                action="Revoke key"
                destroy={() => files.deleteKey(id, key.id).then(live.reload)}
              >
                <p>Within 5 seconds its requests are refused. A revoked key cannot be restored.</p>
              </DestroyButton>
            ),
          ],
        ]}
      >
        <p class="quiet">Clients need a key and its secret. Create one below.</p>
      </LiveTable>
      <Card title="Create a key">
        <FormBody
          form={form}
          action="Create key"
          icon="plus"
          refusal={refusal}
          send={async (input, idempotencyKey) => {
            setCreated(await files.createKey(id, input, { idempotencyKey }));
            form.set("name", "");
            live.reload();
          }}
        >
          <div class="halves">
            <TextField label="Name" help="Such as the program that has it" {...form.field("name")} autocomplete="off" />
            <SelectField
              label="Access"
              value={form.values.access}
              options={accesses}
              onInput={(value) => form.set("access", value === "readonly" ? "readonly" : "readwrite")}
              fault={form.fault("access")}
            />
          </div>
        </FormBody>
      </Card>
    </>
  );
}

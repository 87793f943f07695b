import { useState } from "preact/hooks";
import type { Upgrade } from "@holdfast/sdk/responses.ts";
import { Button } from "../parts/button.tsx";
import { CheckField, SelectField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Badge, Card, Facts } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import { isOpen } from "./service-view.ts";
import type { TabProps } from "./tab-props.ts";
import { newerVersions, upgradeRefusal } from "./upgrade-view.ts";
import { useCatalog } from "./use-catalog.ts";

/** The version of the engine, and its upgrade in two steps: a check with its findings, then the upgrade. */
export function UpgradeCard({ service, reload }: TabProps) {
  const catalog = useCatalog();
  const { services } = account.value.client;
  const [checked, setChecked] = useState<Upgrade | undefined>();
  const form = useForm({ version: "", acceptsTextOrder: false });
  const versions = catalog === undefined ? [] : newerVersions(catalog, service);
  if (catalog === undefined || versions.length === 0) return null;
  const { acceptsTextOrder } = form.values;
  const version = form.values.version || (versions[0]?.[0] ?? "");
  const found = checked?.to_version === version ? checked : undefined;
  const changesTextOrder = found?.findings.some(({ code }) => code === "text_order") === true;
  const refusal =
    refusalOf("services:write") ?? (isOpen(service.operation) ? "Another operation is in progress." : undefined);
  return (
    <Card title="Upgrade">
      <FormBody
        form={form}
        action="Check the upgrade"
        refusal={refusal}
        send={async () => setChecked(await services.upgrade(service.id, version, true))}
      >
        <p class="quiet">
          Replicas are upgraded first, then the primary. The check changes nothing and lists what to know before.
        </p>
        <div class="halves">
          <Facts facts={[["Version now", service.version]]} />
          <SelectField label="New version" {...form.field("version")} value={version} options={versions} />
        </div>
        {found !== undefined && (
          <>
            {found.findings.length === 0 && <Notice tone="good">Nothing prevents the upgrade.</Notice>}
            <ul class="stack" data-gap="s">
              {found.findings.map(({ code, message, blocking }) => (
                <li key={`${code} ${message}`}>
                  {blocking && <Badge tone="bad">prevents it</Badge>} {message}
                </li>
              ))}
            </ul>
            {changesTextOrder && (
              <CheckField
                label="The order of texts may change, and indexes on texts are rebuilt afterwards"
                checked={acceptsTextOrder}
                onInput={(accepts) => form.set("acceptsTextOrder", accepts)}
              />
            )}
            <div class="row">
              <Button
                kind="primary"
                busy={form.isBusy}
                refusal={refusal ?? upgradeRefusal(found, acceptsTextOrder)}
                onClick={() =>
                  form.submit(async (_, idempotencyKey) => {
                    const options = { idempotencyKey };
                    await services.upgrade(service.id, version, false, acceptsTextOrder || undefined, options);
                    setChecked(undefined);
                    reload();
                  })
                }
              >
                Upgrade to {version}
              </Button>
            </div>
          </>
        )}
      </FormBody>
    </Card>
  );
}

import type { ManagedService } from "@holdfast/sdk/responses.ts";
import { priceText } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { ChoiceField, TextField } from "../parts/field.tsx";
import { FormFaults } from "../parts/form-faults.tsx";
import { Card, Facts, Loading } from "../parts/parts.tsx";
import { SubmitForm } from "../parts/submit-form.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import { isOpen, monthlyCost } from "./service-view.ts";
import type { TabProps } from "./tab-props.ts";
import { useCatalog } from "./use-catalog.ts";

/** The size of a service; fields that do not change are absent. */
interface SizeChange {
  readonly plan_name?: string;
  readonly storage_size_gb?: number;
}

interface SizeFormProps {
  readonly service: ManagedService;
  /** The scope that a change needs. */
  readonly scope: string;
  readonly change: (size: SizeChange) => Promise<unknown>;
}

export function ScalingTab({ service, reload }: TabProps) {
  const { services } = account.value.client;
  const change = (size: SizeChange) => services.update(service.id, size).then(reload);
  return <SizeForm service={service} scope="services:write" change={change} />;
}

/** A form that changes the plan or increases the storage, with the difference in cost. */
export function SizeForm({ service, scope, change }: SizeFormProps) {
  const catalog = useCatalog();
  const form = useForm({ plan: service.plan_name, storageGb: String(service.storage_size_gb) });
  const { plan } = form.values;
  if (catalog === undefined) return <Loading rows={6} />;
  const nodes = Math.max(1, service.nodes.length);
  const storageGb = Number(form.values.storageGb);
  const costOf = (plan_name: string, storage_size_gb: number) =>
    monthlyCost(catalog, { plan_name, storage_size_gb, storage_tier: service.storage_tier, nodes });
  const [before, after] = [costOf(service.plan_name, service.storage_size_gb), costOf(plan, storageGb)];
  const isSame = plan === service.plan_name && storageGb === service.storage_size_gb;
  const refusal =
    refusalOf(scope) ??
    (isOpen(service.operation) ? "Another operation is in progress." : undefined) ??
    (isSame ? "Choose another plan or size first." : undefined);
  const price = (amount: number | undefined) =>
    amount === undefined ? "unknown" : priceText(amount, catalog.currency);
  return (
    <SubmitForm
      class="columns"
      refusal={refusal}
      onSubmit={() =>
        form.submit(async () => {
          await change({
            ...(plan !== service.plan_name && { plan_name: plan }),
            ...(storageGb !== service.storage_size_gb && { storage_size_gb: storageGb }),
          });
        })
      }
    >
      <Card title="Size">
        <div class="stack">
          <ChoiceField
            label="Plan"
            name="plan"
            value={plan}
            onInput={(name) => form.set("plan", name)}
            choices={catalog.plans.map(({ plan_name: name, vcpu, memory_gb: memory, monthly_cost: monthly }) => ({
              value: name,
              title: name,
              detail: `${vcpu} vCPU, ${memory} GB, ${price(monthly)} a month`,
            }))}
            fault={form.fault("plan_name")}
          />
          <TextField
            label="Storage in GB"
            help="Storage can only grow"
            type="number"
            min={service.storage_size_gb}
            max={catalog.limits.storage_size_gb_max}
            value={form.values.storageGb}
            onInput={(value) => form.set("storageGb", value)}
            fault={form.fault("storage_size_gb")}
          />
        </div>
      </Card>
      <aside class="summary" aria-label="Summary">
        <Card title="Change">
          <div class="stack">
            <Facts
              facts={[
                ["Now", `${price(before)} a month`],
                ["Afterwards", `${price(after)} a month`],
              ]}
            />
            <p class="quiet small">Another plan restarts the engine; more storage does not.</p>
            <FormFaults form={form} />
            <Button kind="primary" type="submit" busy={form.isBusy} refusal={refusal}>
              Apply
            </Button>
          </div>
        </Card>
      </aside>
    </SubmitForm>
  );
}

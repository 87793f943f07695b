import type { Catalog } from "@holdfast/sdk/responses.ts";
import { priceText } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { CheckField, ChoiceField, SelectField, TextField } from "../parts/field.tsx";
import { FormFaults } from "../parts/form-faults.tsx";
import { Card, Copyable, Facts, Loading, PageHead } from "../parts/parts.tsx";
import { SubmitForm } from "../parts/submit-form.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { commandOf, defaultsOf, type NewServiceInput, newServiceOf } from "./create-view.ts";
import { monthlyCost } from "./service-view.ts";
import { useCatalog } from "./use-catalog.ts";

/** The form that creates a service, with engine, plan, size and the cost of a month. */
export function CreatePage() {
  const catalog = useCatalog();
  return (
    <>
      <PageHead title="Create a service" crumbs={<a href={hrefOf("services")}>Services</a>} />
      {catalog === undefined ? <Loading rows={8} /> : <CreateForm catalog={catalog} />}
    </>
  );
}

function CreateForm({ catalog }: { readonly catalog: Catalog }) {
  const form = useForm<NewServiceInput>(defaultsOf(catalog), { draft: "service" });
  const { values, set, fault } = form;
  const engine = catalog.engines.find(({ database_type: type }) => type === values.engine);
  const cost = monthlyCost(catalog, {
    plan_name: values.plan,
    storage_tier: values.tier,
    storage_size_gb: Number(values.storageGb),
    nodes: Number(values.nodes),
  });
  const refusal = refusalOf("services:write");
  const submit = () =>
    form.submit(async (input, idempotencyKey) => {
      const { id } = await account.value.client.services.create(newServiceOf(input), { idempotencyKey });
      openPage(hrefOf("services", id));
    });
  return (
    <SubmitForm class="columns" refusal={refusal} onSubmit={submit}>
      <div class="stack" data-gap="l">
        <Card title="Name and engine">
          <div class="stack">
            <TextField
              label="Name"
              help="Lower-case letters, digits and hyphens; clients see it in the host name"
              {...form.field("name")}
              autocomplete="off"
            />
            <ChoiceField
              label="Engine"
              name="engine"
              value={values.engine}
              onInput={(value) => {
                set("engine", value);
                set("version", "");
                set("layout", "");
                set("collation", "");
              }}
              choices={catalog.engines.map(({ database_type: type, title, versions }) => ({
                value: type,
                title,
                refusal: versions.some(({ available }) => available)
                  ? undefined
                  : (versions[0]?.reason ?? "Not available here"),
              }))}
              fault={fault("database_type")}
            />
            <SelectField
              label="Version"
              {...form.field("version")}
              options={[
                ["", `${engine?.default_version ?? ""} (default)`],
                ...(engine?.versions ?? [])
                  .filter(({ available }) => available)
                  .map(({ version }) => [version, version] as const),
              ]}
            />
            {engine !== undefined && engine.layout_modes.length > 0 && (
              <SelectField
                label="Layout of databases"
                help="It cannot be changed later"
                {...form.field("layout", "layout_mode")}
                options={[
                  ["", `${engine.layout_modes[0] ?? ""} (default)`],
                  ...engine.layout_modes.slice(1).map((layout) => [layout, layout] as const),
                ]}
              />
            )}
            {engine !== undefined && engine.server_collations.length > 0 && (
              <SelectField
                label="Collation"
                help="It cannot be changed later"
                {...form.field("collation", "server_collation")}
                options={[
                  ["", `${engine.server_collations[0] ?? ""} (default)`],
                  ...engine.server_collations.slice(1).map((name) => [name, name] as const),
                ]}
              />
            )}
          </div>
        </Card>
        <Card title="Size">
          <div class="stack">
            <ChoiceField
              label="Plan"
              name="plan"
              {...form.field("plan", "plan_name")}
              choices={catalog.plans.map(({ plan_name: plan, vcpu, memory_gb: memory, monthly_cost: monthly }) => ({
                value: plan,
                title: plan,
                detail: `${vcpu} vCPU, ${memory} GB, ${priceText(monthly, catalog.currency)} a month`,
              }))}
            />
            <div class="halves">
              <TextField
                label="Storage in GB"
                type="number"
                min={catalog.limits.storage_size_gb_min}
                max={catalog.limits.storage_size_gb_max}
                {...form.field("storageGb", "storage_size_gb")}
              />
              <SelectField
                label="Storage tier"
                {...form.field("tier", "storage_tier")}
                options={catalog.storage_tiers.map(({ storage_tier: tier, medium, monthly_cost_per_gb: perGb }) => [
                  tier,
                  `${tier}, ${medium}, ${priceText(perGb, catalog.currency)} a GB`,
                ])}
              />
              <SelectField
                label="Nodes"
                help="One primary; all others are replicas that can take over"
                {...form.field("nodes", "node_count")}
                options={["1", "2", "3"].map((count) => [count, count])}
              />
              <SelectField
                label="Zone"
                {...form.field("zone")}
                options={catalog.zones.map(({ zone, title }) => [zone, title])}
              />
            </div>
          </div>
        </Card>
        <Card title="Access">
          <div class="stack">
            <TextField
              label="Networks that may connect"
              help="CIDR ranges, separated by commas, such as 10.0.0.0/8"
              {...form.field("cidrs", "allowed_cidrs")}
            />
            <CheckField
              label="Protect from deletion"
              checked={values.isProtected}
              onInput={(isProtected) => set("isProtected", isProtected)}
            />
          </div>
        </Card>
      </div>
      <aside class="summary stack" aria-label="Summary">
        <Card title="Summary">
          <div class="stack">
            <p>
              <span class="price">{cost === undefined ? "–" : priceText(cost, catalog.currency)}</span>
              <span class="quiet"> a month</span>
            </p>
            <Facts
              facts={[
                ["Engine", `${engine?.title ?? ""} ${values.version || (engine?.default_version ?? "")}`],
                ["Plan", values.plan],
                ["Storage", `${values.storageGb} GB`],
                ["Nodes", values.nodes],
              ]}
            />
            <FormFaults form={form} />
            <Button kind="primary" type="submit" busy={form.isBusy} refusal={refusal}>
              Create service
            </Button>
          </div>
        </Card>
        <details>
          <summary>The same from a terminal</summary>
          <Copyable text={commandOf(values)} label="the command" />
        </details>
      </aside>
    </SubmitForm>
  );
}

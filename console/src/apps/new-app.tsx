import { ApiError } from "@holdfast/sdk/errors.ts";
import type { AppRegistry } from "@holdfast/sdk/responses.ts";
import { useLive } from "../live/use-live.ts";
import { ChoiceField, SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Card, Copyable, Facts } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account, refusalOf } from "../session/account.ts";
import { appPlans, deploymentInputOf, type NewAppInput, newAppOf, newAppSize } from "./hosted-view.ts";
import { DeploymentFields, deploymentFault } from "./variables-fields.tsx";

interface Hosting {
  /** The registry of images; undefined until it is loaded, and where apps cannot run. */
  readonly registry?: AppRegistry;
  /** The reason why no app can run here. */
  readonly refusal?: string;
}

function useHosting(): Hosting {
  const live = useLive<Hosting>("registry", async (signal) => {
    try {
      return { registry: await account.value.client.apps.registry({ signal }) };
    } catch (error) {
      if (error instanceof ApiError && error.code === "hosting_unavailable") return { refusal: error.message };
      throw error;
    }
  });
  return live.data ?? {};
}

/** The form for a new app, which the platform runs or which runs elsewhere. */
export function NewApp() {
  const catalog = useCatalog();
  const { registry, refusal: unavailable } = useHosting();
  const form = useForm<NewAppInput>({
    ...deploymentInputOf(null),
    name: "",
    hosting: "",
    home: "",
    plan: "",
    storageGb: "10",
    replicas: "1",
  });
  const hosting = form.values.hosting || (registry === undefined ? "external" : "platform");
  const isHosted = hosting === "platform";
  const plans = catalog === undefined ? [] : appPlans(catalog);
  const costOf = (plan: string) =>
    catalog === undefined
      ? ""
      : `, ${newAppSize(catalog, { ...form.values, plan, replicas: "1" }).cost} a month with its disk`;
  return (
    <Card title="Add an app">
      <FormBody
        form={form}
        action={isHosted ? "Run the image" : "Register app"}
        icon="plus"
        refusal={refusalOf("apps:write") ?? (isHosted ? deploymentFault(form.values, []) : undefined)}
        send={async (input, idempotencyKey) => {
          const body = newAppOf({ ...input, hosting });
          const { id } = await account.value.client.apps.create(body, { idempotencyKey });
          openPage(hrefOf("apps", id));
        }}
      >
        <ChoiceField
          label="Where it runs"
          name="hosting"
          value={hosting}
          onInput={(value) => form.set("hosting", value)}
          choices={[
            {
              value: "platform",
              title: "On the platform",
              detail: "An image, behind HTTPS at a name that never changes",
              refusal: registry === undefined ? (unavailable ?? "Loading") : undefined,
            },
            { value: "external", title: "Elsewhere", detail: "Only its databases and its sign-in are here" },
          ]}
        />
        <div class="halves">
          <TextField
            label="Name"
            help="Lower-case letters, digits and hyphens"
            {...form.field("name")}
            autocomplete="off"
          />
          <TextField
            label="Address of the home page"
            help="Such as https://shop.example.com"
            {...form.field("home", "home_url")}
            autocomplete="off"
          />
          {isHosted && (
            <>
              <SelectField
                label="Plan of each machine"
                {...form.field("plan", "plan_name")}
                value={form.values.plan || (plans[0]?.plan_name ?? "")}
                options={plans.map(({ plan_name: plan, vcpu, memory_gb: memory }) => [
                  plan,
                  `${plan}: ${vcpu} vCPU, ${memory} GB${costOf(plan)}`,
                ])}
              />
              <TextField
                label="Storage of each machine in GB"
                type="number"
                min={1}
                {...form.field("storageGb", "storage_size_gb")}
              />
              <TextField label="Number of machines" type="number" min={1} max={10} {...form.field("replicas")} />
            </>
          )}
        </div>
        {isHosted && catalog !== undefined && (
          <Facts
            facts={[
              ["Each machine", newAppSize(catalog, form.values).machine],
              ["Cost a month", newAppSize(catalog, form.values).cost],
            ]}
          />
        )}
        {isHosted && <DeploymentFields form={form} secretNames={[]} />}
        {isHosted && registry !== undefined && <Push registry={registry} />}
      </FormBody>
    </Card>
  );
}

/** Commands that push an image to the registry. */
function Push({ registry: { host, repository } }: { readonly registry: AppRegistry }) {
  const text = [
    "holdfast apps registry-login   # prints a password for an hour",
    "mkdir -p certs && cp ca.pem certs/ca.crt   # ca.pem of the connection page of a service",
    `skopeo copy --dest-cert-dir certs --dest-creds "token:$PASSWORD" docker-archive:shop.tar docker://${host}/${repository}/shop:1`,
  ].join("\n");
  return (
    <details>
      <summary>Push an image first</summary>
      <Copyable text={text} label="the commands" />
    </details>
  );
}

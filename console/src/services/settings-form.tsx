import type { ManagedService } from "@holdfast/sdk/responses.ts";
import { CheckField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Card } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { settingsChangeOf, type SettingsInput } from "./settings-view.ts";

interface SettingsFormProps {
  readonly service: ManagedService;
  readonly nameHelp: string;
  readonly refusal: string | undefined;
  readonly change: (change: ReturnType<typeof settingsChangeOf>) => Promise<unknown>;
}

/** Name, networks and protection of a service. */
export function SettingsForm({ service, nameHelp, refusal, change }: SettingsFormProps) {
  const form = useForm<SettingsInput>({
    name: service.name,
    cidrs: service.allowed_cidrs.join(", "),
    isProtected: service.deletion_protection,
  });
  return (
    <Card title="Settings">
      <FormBody
        form={form}
        action="Save"
        kind="primary"
        refusal={refusal}
        send={async (_, __, edited) => {
          await change(settingsChangeOf(edited));
          showToast("good", "Saved");
        }}
      >
        <div class="halves">
          <TextField label="Name" help={nameHelp} {...form.field("name")} />
          <TextField
            label="Networks that may connect"
            help="CIDR ranges, separated by commas"
            {...form.field("cidrs", "allowed_cidrs")}
          />
        </div>
        <CheckField
          label="Protect from deletion"
          checked={form.values.isProtected}
          onInput={(isProtected) => form.set("isProtected", isProtected)}
        />
      </FormBody>
    </Card>
  );
}

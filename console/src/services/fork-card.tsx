import type { Backup, ManagedService } from "@holdfast/sdk/responses.ts";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Card } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { nameOfBackup } from "./backups-view.ts";

interface ForkCardProps {
  readonly service: ManagedService;
  readonly backups: readonly Backup[];
}

/** A form that creates a service like this one with the data of a backup. */
export function ForkCard({ service, backups }: ForkCardProps) {
  const form = useForm({ name: `${service.name}-fork`, backup: "", nodes: "1" });
  const completed = backups.filter(({ status }) => status === "completed");
  return (
    <Card title="Fork">
      <FormBody
        form={form}
        action="Create the fork"
        refusal={
          refusalOf("services:write") ??
          (completed.length === 0 ? "There is no completed backup yet." : undefined) ??
          (service.status === "Running" ? undefined : "The service must be Running.")
        }
        send={async ({ name, backup, nodes }, idempotencyKey) => {
          const choice = { ...(backup !== "" && { backupId: backup }), nodeCount: Number(nodes) };
          const { id } = await account.value.client.services.fork(service.id, name, { ...choice, idempotencyKey });
          openPage(hrefOf("services", id));
        }}
      >
        <p class="quiet">
          A new service with the plan, the settings and the parameters of this one, and with the data of a backup.
        </p>
        <div class="halves">
          <SelectField
            label="Backup"
            {...form.field("backup", "backup_id")}
            options={[["", "The newest"], ...completed.map((backup) => [backup.id, nameOfBackup(backup)] as const)]}
          />
          <TextField label="Name of the fork" {...form.field("name")} autocomplete="off" />
          <TextField label="Nodes of the fork" type="number" min={1} {...form.field("nodes", "node_count")} />
        </div>
      </FormBody>
    </Card>
  );
}

import { ActionButton } from "../parts/action-button.tsx";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { CheckField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Card } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { listOf } from "../services/create-view.ts";
import { isOpen } from "../services/service-view.ts";
import type { TabProps } from "../services/tab-props.ts";
import { account, refusalOf } from "../session/account.ts";

/** Forms for name, networks and protection, for the state of the server, and for the deletion. */
export function FilesSettingsTab({ service, reload }: TabProps) {
  const { files } = account.value.client;
  const form = useForm({
    name: service.name,
    cidrs: service.allowed_cidrs.join(", "),
    isProtected: service.deletion_protection,
  });
  const refusal = refusalOf("files:write");
  const commandRefusal = refusal ?? (isOpen(service.operation) ? "Another operation is in progress." : undefined);
  return (
    <>
      <Card title="Settings">
        <FormBody
          form={form}
          action="Save"
          kind="primary"
          refusal={refusal}
          send={async ({ name, cidrs, isProtected }) => {
            await files.update(service.id, {
              ...(name !== service.name && { name }),
              allowed_cidrs: listOf(cidrs),
              deletion_protection: isProtected,
            });
            showToast("good", "Saved");
            reload();
          }}
        >
          <div class="halves">
            <TextField label="Name" help="The bucket keeps its name" {...form.field("name")} />
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
      <Card title="Server">
        <div class="row">
          {service.status === "Stopped" ? (
            <ActionButton refusal={commandRefusal} run={() => files.start(service.id).then(reload)}>
              Start
            </ActionButton>
          ) : (
            <>
              <ActionButton refusal={commandRefusal} run={() => files.restart(service.id).then(reload)}>
                Restart
              </ActionButton>
              <ActionButton refusal={commandRefusal} run={() => files.stop(service.id).then(reload)}>
                Stop
              </ActionButton>
            </>
          )}
        </div>
      </Card>
      <DeletionCard
        kind="files service"
        name={service.name}
        refusal={refusal ?? (service.deletion_protection ? "The files service is protected from deletion." : undefined)}
        destroy={async () => {
          await files.delete(service.id);
          showToast("good", `${service.name} is being deleted`);
          openPage(hrefOf("files"));
        }}
      >
        <p>
          Clients are disconnected immediately. There are no backups of files: for 7 days the files service can be
          undeleted from its disk with objects and keys, then they are gone.
        </p>
      </DeletionCard>
    </>
  );
}

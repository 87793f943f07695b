import { ActionButton } from "../parts/action-button.tsx";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { Card } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { hrefOf, openPage } from "../router/location.ts";
import { isOpen } from "../services/service-view.ts";
import { SettingsForm } from "../services/settings-form.tsx";
import type { TabProps } from "../services/tab-props.ts";
import { account, refusalOf } from "../session/account.ts";

/** Forms for name, networks and protection, for the state of the server, and for the deletion. */
export function FilesSettingsTab({ service, reload }: TabProps) {
  const { files } = account.value.client;
  const refusal = refusalOf("files:write");
  const commandRefusal = refusal ?? (isOpen(service.operation) ? "Another operation is in progress." : undefined);
  return (
    <>
      <SettingsForm
        service={service}
        nameHelp="The bucket keeps its name"
        refusal={refusal}
        change={(change) => files.update(service.id, change).then(reload)}
      />
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
